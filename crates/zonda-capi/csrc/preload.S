/* The functions of libzonda-preload.so: each jumps to the one of the same name in the library beside it (preload.c).
 *
 * A slot has where a function is. At first that is a place behind the jump, which says its number and has preload.c fill all slots;
 * arguments, and what variadic functions count in registers, are kept meanwhile. So functions may be called before any constructor ran.
 */
#if defined(__x86_64__)

    .macro ZONDA_STUB name, index
    .globl \name
    .type \name, @function
    .p2align 4
\name:
    jmp *2f(%rip)
1:  push $\index
    jmp zonda_preload_first
    .size \name, . - \name
    .pushsection .data.zonda_preload, "aw"
2:  .quad 1b
    .popsection
    .endm

    .text
    .type zonda_preload_first, @function
zonda_preload_first:
    .cfi_startproc
    .cfi_def_cfa_offset 16
    push %rax
    push %rdi
    push %rsi
    push %rdx
    push %rcx
    push %r8
    push %r9
    .cfi_adjust_cfa_offset 56
    sub $136, %rsp
    .cfi_adjust_cfa_offset 136
    movups %xmm0, 0(%rsp)
    movups %xmm1, 16(%rsp)
    movups %xmm2, 32(%rsp)
    movups %xmm3, 48(%rsp)
    movups %xmm4, 64(%rsp)
    movups %xmm5, 80(%rsp)
    movups %xmm6, 96(%rsp)
    movups %xmm7, 112(%rsp)
    mov 192(%rsp), %rdi
    call zonda_preload_find
    mov %rax, %r11
    movups 0(%rsp), %xmm0
    movups 16(%rsp), %xmm1
    movups 32(%rsp), %xmm2
    movups 48(%rsp), %xmm3
    movups 64(%rsp), %xmm4
    movups 80(%rsp), %xmm5
    movups 96(%rsp), %xmm6
    movups 112(%rsp), %xmm7
    add $136, %rsp
    .cfi_adjust_cfa_offset -136
    pop %r9
    pop %r8
    pop %rcx
    pop %rdx
    pop %rsi
    pop %rdi
    pop %rax
    .cfi_adjust_cfa_offset -56
    add $8, %rsp
    .cfi_adjust_cfa_offset -8
    jmp *%r11
    .cfi_endproc
    .size zonda_preload_first, . - zonda_preload_first

#elif defined(__aarch64__)

    .macro ZONDA_STUB name, index
    .globl \name
    .type \name, %function
    .p2align 4
\name:
    adrp x16, 2f
    ldr x16, [x16, :lo12:2f]
    br x16
1:  mov w17, #\index
    b zonda_preload_first
    .size \name, . - \name
    .pushsection .data.zonda_preload, "aw"
    .p2align 3
2:  .xword 1b
    .popsection
    .endm

    .text
    .type zonda_preload_first, %function
zonda_preload_first:
    .cfi_startproc
    stp x29, x30, [sp, #-224]!
    .cfi_def_cfa_offset 224
    .cfi_offset x29, -224
    .cfi_offset x30, -216
    mov x29, sp
    stp x0, x1, [sp, #16]
    stp x2, x3, [sp, #32]
    stp x4, x5, [sp, #48]
    stp x6, x7, [sp, #64]
    str x8, [sp, #80]
    stp q0, q1, [sp, #96]
    stp q2, q3, [sp, #128]
    stp q4, q5, [sp, #160]
    stp q6, q7, [sp, #192]
    mov w0, w17
    bl zonda_preload_find
    mov x16, x0
    ldp x0, x1, [sp, #16]
    ldp x2, x3, [sp, #32]
    ldp x4, x5, [sp, #48]
    ldp x6, x7, [sp, #64]
    ldr x8, [sp, #80]
    ldp q0, q1, [sp, #96]
    ldp q2, q3, [sp, #128]
    ldp q4, q5, [sp, #160]
    ldp q6, q7, [sp, #192]
    ldp x29, x30, [sp], #224
    .cfi_restore x29
    .cfi_restore x30
    .cfi_def_cfa_offset 0
    br x16
    .cfi_endproc
    .size zonda_preload_first, . - zonda_preload_first

#else
#error "x86-64 and aarch64"
#endif

    .pushsection .data.zonda_preload, "aw"
    .p2align 3
    .globl zonda_preload_slots
    .hidden zonda_preload_slots
    .type zonda_preload_slots, %object
zonda_preload_slots:
    .popsection

    .text
#define ZONDA_NAME(name, index) ZONDA_STUB name, index
#include "preload_names.h"

    .section .note.GNU-stack, "", %progbits
