@ Functions of (a, b, data) for test_concrete.py: each line begins where an F names the function.
.text
.macro F name
.balign 4
.globl \name
.type \name, %function
\name:
.endm
.arm
F s_predicated
  cmp r0, r1; ldrne r3, [r2], #4; moveq r3, #3; strhi r3, [r2, #8]!; ldrblo r12, [r2, #1]; movhs r12, #5; strbge r12, [r2, #7]
  addlt r3, r3, r12, lsl #3; ldrshgt r12, [r2, #2]; adds r3, r3, r12; rsbmi r3, r3, #0; addvs r3, r3, #1; addvc r3, r3, r2
  bicscs r3, r3, #12; mvneq r3, r3; mov r0, r3; bx lr
F s_multiple
  push {r4-r8, lr}; cmp r0, r1; ldmlo r2!, {r3-r6}; ldmibhs r2, {r3, r5}; stmdane r2, {r0, r3}; stmeq r2!, {r0, r1, r5}
  ldrdge r6, r7, [r2, #8]; strdlt r6, r7, [r2]; tst r0, #4; addne r0, r2, #1; popne {r4-r8, pc}; sub r0, r2, r1
  ldm sp!, {r4-r8, pc}
F s_return
  cmp r0, #0; bxlt lr; movs r3, r0, lsr #3; moveq pc, lr; push {r4, lr}; blcs 2f; bl 1f; blx r12; pop {r4, pc}
1: add r12, pc, #0; bx lr
2: add r0, r0, r1; bx lr
F s_jump
  and r3, r0, #3; ldr pc, [pc, r3, lsl #2]; nop
  .word 1f, 2f, 3f, 4f
1: add r0, r0, #1
2: add r0, r0, r1
3: eor r0, r0, r1; and r3, r1, #1; add pc, pc, r3, lsl #2; nop; b 4f; nop
4: bx lr
F s_shift
  cmn r0, r1; movs r3, r0, lsl r1; adc r12, r3, #0; movs r3, r0, lsr r1; adc r12, r12, r3; movs r3, r0, asr r1; sbc r12, r12, r3
  movs r3, r0, ror r1; adc r12, r12, r3; movs r3, r0, rrx; adc r12, r12, r3; movs r3, r1, lsr #32; adc r12, r12, r3
  movs r3, r1, asr #32; rsc r12, r12, r3; ands r3, r0, #0xff000000; adc r12, r12, r3; teq r0, r1, lsl #3; sbcs r12, r12, r0
  cmn r0, r1; adc r0, r12, r1, ror #5; bx lr
F s_multiply
  push {r4, r5, lr}; umull r3, r4, r0, r1; smull r5, r12, r0, r1; umlal r3, r4, r5, r12; smlal r5, r12, r3, r0; mla r0, r3, r4, r0
  muls r3, r5, r0; addmi r0, r0, r12; smulbb r3, r0, r1; smulbt r4, r0, r1; smlabb r0, r3, r4, r0; clz r3, r0; add r0, r0, r3
  pop {r4, r5, pc}
F s_address
  ldrsb r3, [r2, #3]!; ldrsh r12, [r2], #5; add r3, r3, r12; and r1, r1, #15; ldrb r12, [r2, r1]; add r3, r3, r12
  ldr r12, [r2, -r1, lsl #0]; str r3, [r2, r1, lsl #2]!; strb r12, [r2], -r1; ldrsb r12, [r2, r1]; bic r2, r2, #3; swp r12, r12, [r2]; swpb r12, r12, [r2]
  add r3, r3, r12; ldr r12, 1f; add r3, r3, r12; ldrh r12, 1f; add r3, r3, r12; ldrsh r12, 1f; add r3, r3, r12; ldrsb r12, 1f
  add r3, r3, r12; ldr r0, =0x12345678; add r0, r0, r3; ldrd r2, r3, 1f; sub r0, r2; eor r0, r3; add r0, r0, r12; bx lr
.balign 8
1: .word 0xcafe9234, 0x00c0ffee
