# Functions of (a, b, data) for test_concrete.py: each line begins where an F names the function.
.text
.macro F name
.balign 4
.globl \name
.type \name, @function
\name:
.endm
F s_rotate
  rlwinm 6, 3, 5, 3, 20; rlwinm. 7, 4, 9, 28, 3; rlwimi 6, 4, 11, 7, 19; rlwnm 8, 3, 4, 2, 27; cntlzw 9, 4; add 6, 6, 7
  xor 6, 6, 8; add 6, 6, 9; slw 7, 3, 4; srw 8, 3, 4; sraw 9, 3, 4; addze 9, 9; srawi 10, 4, 3; addze 10, 10; add 6, 6, 7
  xor 6, 6, 8; add 6, 6, 9; subf 6, 10, 6; extsb 7, 6; extsh 8, 3; nand 7, 7, 8; eqv 8, 8, 4; orc 7, 7, 8; andc 3, 7, 6; blr
F s_carry
  addc 6, 3, 4; adde 7, 3, 3; subfc 8, 3, 4; subfe 9, 7, 6; addic. 10, 9, -5; addme 7, 7; subfze 8, 8; subfic 11, 4, 77
  subfme 9, 9; addze. 10, 10; bso 1f; add 6, 6, 7
1: neg 7, 8; xor 6, 6, 9; add 6, 6, 10; xor 6, 6, 11; add 6, 6, 7; mfcr 7; add 3, 6, 7; addze 3, 3; blr
F s_condition
  cmpw 0, 3, 4; cmplw 1, 3, 4; cmpwi 7, 3, -7; crand 20, 1, 5; crand 2, 1, 5; crandc 3, 0, 6; cror 21, 28, 4; crnor 22, 0, 6; crxor 23, 20, 21; creqv 24, 22, 2
  mfcr 6; mcrf 5, 1; li 7, 0; bgt 7, 1f; addi 7, 7, 1
1: bne 1, 2f; addi 7, 7, 2
2: bt 23, 3f; addi 7, 7, 4
3: mtcrf 0x81, 4; bt 2, 4f; addi 7, 7, 8
4: bf 31, 5f; addi 7, 7, 16
5: mfcr 8; add 3, 6, 7; xor 3, 3, 8; beqlr 1; addi 3, 3, 1; bgtlr 0; addi 3, 3, 1; blr
F s_loop
  clrlwi 6, 3, 28; addi 6, 6, 1; mtctr 6; addi 5, 5, -1; li 7, 0
1: lbzu 8, 1(5); add 7, 7, 8; cmpwi 8, 5; bdnzf 2, 1b; mfctr 8; add 3, 7, 8; cmpwi 4, 9; bdnzflr 2; addi 3, 3, 1; bdzflr 1; addi 3, 3, 1; bdnztlr 0
  addi 3, 3, 1; blr
F s_jump
  mflr 0; stwu 1, -16(1); stw 0, 20(1); bl 1f
1: mflr 6; clrlwi 7, 3, 30; slwi 7, 7, 3; addi 6, 6, 2f - 1b; add 6, 6, 7; mtctr 6; bctr
2: addi 3, 3, 1; nop; add 3, 3, 4; b 3f; xor 3, 3, 4; nop; nop; nop
3: bl 4f; lwz 0, 20(1); addi 1, 1, 16; mtlr 0; blr
4: mulli 3, 3, 7; blr
F s_multiply
  mullw 6, 3, 4; mulhw 7, 3, 4; mulhwu 8, 3, 4; ori 9, 4, 1; divwu 10, 3, 9; clrlwi 9, 9, 16; divw 11, 3, 9; add 6, 6, 7
  xor 6, 6, 8; add 6, 6, 10; add 3, 6, 11; blr
F s_multiple
  stwu 1, -32(1); stmw 29, 16(1); lmw 29, 4(5); add 3, 29, 30; xor 3, 3, 31; stmw 30, 20(5); lmw 29, 16(1); addi 1, 1, 32; blr
F s_reversed
  lwbrx 6, 0, 5; li 7, 6; lhbrx 8, 5, 7; stwbrx 3, 5, 7; li 7, 12; sthbrx 4, 5, 7; add 3, 6, 8; blr
F s_address
  li 8, 3; lhau 6, 2(5); lbzux 7, 5, 8; add 6, 6, 7; lhzx 7, 5, 8; add 6, 6, 7; lwzu 7, 4(5); add 6, 6, 7; lha 7, -2(5)
  add 6, 6, 7; stwux 3, 5, 8; stbu 4, 1(5); sthu 4, 3(5); sync; isync; eieio; add 3, 6, 5; blr
