volatile unsigned sink;
volatile unsigned port;
unsigned words[129];
struct node { struct node *next; int key; };
int marked(const struct node *node)
{
    int total = 0;
    _Pragma("loopbound min 0 max 9")
    while (node) {
        total += node->key;
        node = node->next;
    }
    return total;
}
#define ASM(text) { __asm__ volatile(text); }
extern int stored_over(int a, int b) __attribute__((naked));
extern int outlived(int a, int b) __attribute__((naked));
extern int not_taken_back(int a, int b) __attribute__((naked));
extern int tangled(int a, int b) __attribute__((naked));
extern int over(int a, int b) __attribute__((naked));
int over(int a, int b) ASM("push {r4, r5, lr}\n sub sp, #20\n and r1, r1, #31\n str r1, [sp, #20]\n mov r2, sp\n adds r2, r2, r0\n strb r3, [r2]\n movs r5, #0\n add sp, #20\n pop {r4, r5, pc}")
int stored_over(int a, int b) ASM("push {r4, r5, r6, lr}\n movs r5, #4\n0: movs r4, #3\n bl over\n and r4, r4, #31\n adds r4, #1\n1: subs r4, #1\n bne 1b\n subs r5, #1\n bne 0b\n pop {r4, r5, r6, pc}")
extern int saves(int a, int b) __attribute__((naked));
extern int reads(int a, int b) __attribute__((naked));
int saves(int a, int b) ASM("push {r4, r5, r6, lr}\n nop\n pop {r4, r5, r6, pc}")
int reads(int a, int b) ASM("push {r5, lr}\n sub sp, #8\n mov r2, sp\n adds r2, r2, r0\n strb r1, [r2]\n ldr r3, [sp]\n and r3, r3, #31\n adds r3, #1\n1: subs r3, #1\n bne 1b\n movs r5, #0\n add sp, #8\n pop {r5, pc}")
int outlived(int a, int b) ASM("push {r4, r5, r6, lr}\n movs r5, #4\n0: movs r4, #3\n bl saves\n bl reads\n subs r5, #1\n bne 0b\n pop {r4, r5, r6, pc}")
extern int roomy(int a, int b) __attribute__((naked));
int roomy(int a, int b) ASM("push {r5, r6, lr}\n mov r2, sp\n adds r2, r2, r0\n strb r3, [r2]\n ldr r3, [sp, #4]\n and r3, r3, #31\n adds r3, #1\n1: subs r3, #1\n bne 1b\n movs r5, #0\n ldr r5, [sp]\n add sp, #8\n pop {pc}")
int not_taken_back(int a, int b) ASM("push {r4, r5, r6, lr}\n movs r5, #4\n0: movs r6, #3\n bl roomy\n subs r5, #1\n bne 0b\n pop {r4, r5, r6, pc}")
int tangled(int a, int b) ASM("movs r2, #0\n ldr r3, =port\n cmp r0, #5\n bge 2f\n1: adds r2, #1\n ldr r1, [r3]\n2: adds r2, #1\n ldr r1, [r3]\n cmp r2, #1\n beq 3f\n cmp r2, #20\n blt 1b\n bx lr\n3: .rept 100\n ldr r1, [r3]\n .endr\n bx lr\n .ltorg")
