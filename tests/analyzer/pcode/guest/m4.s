@ Functions of (a, b, data) for test_concrete.py: each line begins where an F names the function.
.text
.macro F name
.balign 4
.globl \name
.type \name, %function
\name:
.endm
.syntax unified
.thumb
F s_ite
  cmp r0, r1; ite hi; subhi r0, r0, r1; subls r0, r1, r0
  cmp r0, #100; ittt lt; ldrlt r3, [r2]; addlt r0, r3; strlt r0, [r2, #4]
  tst r1, #1; itete ne; ldrbne r3, [r2, #3]; ldrsheq r3, [r2, #6]; strhne r3, [r2, #10]; strbeq r3, [r2, #9]
  adds r0, r0, r3; itt mi; cmpmi r0, r1; rsbmi r0, r0, #0; ittee vs; movvs r1, #1; addvs r0, r1; movvc r1, #2; eorvc r0, r1
  bx lr
F s_it_return
  push {r4, lr}; mov r4, r1; cmp r0, r1; itt eq; moveq r0, #17; popeq {r4, pc}
  lsls r3, r0, #30; it cs; bcs.w 1f; itt mi; addmi r0, #9; popmi {r4, pc}
1: adds r0, r4; pop {r4, pc}
F s_it_bx
  cmp r0, #0; it lt; bxlt lr; mvns r0, r0; it eq; bxeq lr; ands r0, r1; bx lr
F s_it_multiple
  push {r4-r7, lr}; cmp r0, r1; itee ge; ldmiage r2!, {r3-r6}; ldmdblt r2, {r3, r5}; stmialt r2!, {r0, r1}
  it ge; strdge r3, r5, [r2, #8]; sub r0, r2, #0; pop {r4-r7, pc}
F s_multiple
  push {r4-r9, lr}; ldmia r2!, {r3, r4, r5, r6}; eor r3, r4; stmia r2!, {r0, r1, r3}; stmdb r2!, {r5, r6}
  ldrd r7, r8, [r2, #8]; strd r7, r8, [r2, #-4]; add r0, r7, r8; add r0, r3; pop {r4-r9, pc}
F s_tbb
  and r3, r0, #3; tbb [pc, r3]
9: .byte (1f - 9b) / 2, (2f - 9b) / 2, (3f - 9b) / 2, (4f - 9b) / 2
1: adds r0, #1
2: adds r0, r1
3: eors r0, r1
4: and r3, r1, #3; tbh [pc, r3, lsl #1]
8: .short (5f - 8b) / 2, (6f - 8b) / 2, (6f - 8b) / 2, (7f - 8b) / 2
5: adds r0, #3
6: cbz r1, 7f; adds r0, #7
7: cbnz r0, 7f; adds r0, #1
7: bx lr
F s_unaligned
  ldr r3, [r2, #1]; ldrh r12, [r2, #7]; add r3, r12; ldrsh r12, [r2, #11]; add r3, r12; str r0, [r2, #13]; strh r1, [r2, #21]
  mov r0, r3; bx lr
F s_bits
  rbit r3, r0; clz r12, r3; rev r3, r1; eor r12, r3; rev16 r3, r0; add r12, r3; revsh r3, r1; eor r12, r3
  sxtb r3, r0; add r12, r3; uxth r3, r1; add r12, r3; ubfx r3, r0, #3, #11; eor r12, r3; sbfx r3, r1, #5, #9; eor r12, r3
  bfi r12, r0, #7, #13; bfc r12, #2, #3; sxtab r3, r12, r1; uxtah r12, r3, r0, ror #8; orn r12, r12, r1; usat r3, #9, r0; add r12, r3; ssat r3, #5, r1
  add r12, r3; usat r3, #8, r0, asr #20; add r12, r3; ssat r3, #17, r1, lsl #3; add r0, r12, r3; bx lr
F s_shift
  cmn r0, r1; lsls r3, r0, r1; mov r12, r3; adc r12, r12, r12; lsrs r3, r0, r1; sbc r12, r12, r3; asrs r3, r0, r1; adc r12, r3, r12
  rors r3, r0, r1; adc r12, r3, r12; rrxs r3, r0; adc r12, r3, r12; movs r3, r0, lsl #0; lsrs r3, r1, #32; adc r12, r3, r12
  asrs r3, r1, #32; sbcs r12, r3; add r0, r12, r0, ror #7; bx lr
F s_multiply
  push {r4, r5, lr}; umull r3, r4, r0, r1; smull r5, r12, r0, r1; umlal r3, r4, r5, r12; smlal r5, r12, r3, r0; mla r0, r3, r4, r0
  mls r0, r5, r12, r0; smulbb r3, r0, r1; smulbt r4, r0, r1; smlabb r0, r3, r4, r0; smmul r3, r0, r1; umaal r3, r0, r1, r5
  add r0, r3; pop {r4, r5, pc}
F s_address
  ldrsb r3, [r2, #3]!; ldrsh r12, [r2], #5; add r3, r12; ldr r12, [r2, #-4]; add r3, r12; and r1, #15; ldrb r12, [r2, r1]
  add r3, r12; ldrh r12, [r2, r1, lsl #1]; add r3, r12; str r3, [r2], #4; strb r3, [r2, #-1]!; ldr r12, 1f; add r3, r12
  adr r12, 1f; ldr r12, [r12, #4]; ldr r0, =0x12345678; add r0, r3; add r0, r12; ldrh r12, 1f; add r0, r12; ldrsh r12, 1f; add r0, r12
  ldrsb r12, 1f; eor r0, r12; ldrb r12, 1f; add r0, r12; ldrd r2, r3, 1f; sub r0, r2; eor r0, r3; bx lr
.balign 8
1: .word 0xcafe9234, 0x00c0ffee
F s_divide
  udiv r3, r0, r1; sdiv r12, r0, r1; mls r0, r12, r1, r3; bx lr
