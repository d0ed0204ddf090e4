import type { Architecture } from './oci-image.ts';

/*
 * The pause program, which keeps the namespaces of a pod alive. It is the first process of the
 * sandbox, and with a shared process namespace the parent of every orphaned process in it. It
 * blocks the signals INT, TERM and CHLD and waits for exactly these, because the first process of a
 * PID namespace loses every signal that has no handler and is not blocked. INT and TERM make it
 * exit with 0; on CHLD it reaps all exited children.
 *
 *   block(INT, TERM, CHLD)
 *   forever: signal = wait for one of them (after an error or interruption: repeat)
 *     CHLD -> wait4(-1, WNOHANG) until no exited child is left
 *     INT or TERM -> exit 0
 *
 * The signal set is one 64-bit word with bit n-1 for signal n: 1<<1 (INT 2) | 1<<14 (TERM 15) |
 * 1<<16 (CHLD 17) = 0x14002. It is on the stack, so the program needs no data section. Both
 * listings are hand-written machine code; the executable consists only of ELF headers and this
 * code.
 */

/**
 * x86-64 system calls: rax is the number, rdi, rsi, rdx and r10 are the arguments, and rax is the
 * result.
 */
const amd64Code = [
  // start: rt_sigprocmask(SIG_BLOCK, &set, NULL, 8)
  [0x68, 0x02, 0x40, 0x01, 0x00], // push 0x14002
  [0x48, 0x89, 0xe6], // mov rsi, rsp
  [0x31, 0xff], // xor edi, edi           SIG_BLOCK is 0
  [0x31, 0xd2], // xor edx, edx
  [0x41, 0xba, 0x08, 0x00, 0x00, 0x00], // mov r10d, 8
  [0xb8, 0x0e, 0x00, 0x00, 0x00], // mov eax, 14
  [0x0f, 0x05], // syscall
  // wait (0x19): rt_sigtimedwait(&set, NULL, NULL, 8)
  [0x48, 0x89, 0xe7], // mov rdi, rsp
  [0x31, 0xf6], // xor esi, esi
  [0x31, 0xd2], // xor edx, edx           no timeout
  [0x41, 0xba, 0x08, 0x00, 0x00, 0x00], // mov r10d, 8
  [0xb8, 0x80, 0x00, 0x00, 0x00], // mov eax, 128
  [0x0f, 0x05], // syscall
  [0x83, 0xf8, 0x11], // cmp eax, 17
  [0x74, 0x13], // je reap
  [0x83, 0xf8, 0x02], // cmp eax, 2
  [0x74, 0x05], // je quit
  [0x83, 0xf8, 0x0f], // cmp eax, 15
  [0x75, 0xdd], // jne wait
  // quit (0x3c): exit_group(0)
  [0x31, 0xff], // xor edi, edi
  [0xb8, 0xe7, 0x00, 0x00, 0x00], // mov eax, 231
  [0x0f, 0x05], // syscall
  // reap (0x45): wait4(-1, NULL, WNOHANG, NULL)
  [0x48, 0xc7, 0xc7, 0xff, 0xff, 0xff, 0xff], // mov rdi, -1
  [0x31, 0xf6], // xor esi, esi
  [0xba, 0x01, 0x00, 0x00, 0x00], // mov edx, 1     WNOHANG
  [0x45, 0x31, 0xd2], // xor r10d, r10d
  [0xb8, 0x3d, 0x00, 0x00, 0x00], // mov eax, 61
  [0x0f, 0x05], // syscall
  [0x48, 0x85, 0xc0], // test rax, rax
  [0x7f, 0xe3], // jg reap                an exited child was reaped, try the next one
  [0xeb, 0xb5], // jmp wait
].flat();

/** arm64 system calls: x8 is the number, x0 to x3 are the arguments, and x0 is the result. */
const arm64Code = [
  // start: rt_sigprocmask(SIG_BLOCK, &set, NULL, 8)
  0x52880049, // mov w9, #0x4002
  0x72a00029, // movk w9, #1, lsl #16
  0xf81f0fe9, // str x9, [sp, #-16]!
  0xd2800000, // mov x0, #0                SIG_BLOCK is 0
  0x910003e1, // mov x1, sp
  0xd2800002, // mov x2, #0
  0xd2800103, // mov x3, #8
  0xd28010e8, // mov x8, #135
  0xd4000001, // svc #0
  // wait (0x24): rt_sigtimedwait(&set, NULL, NULL, 8)
  0x910003e0, // mov x0, sp
  0xd2800001, // mov x1, #0
  0xd2800002, // mov x2, #0                no timeout
  0xd2800103, // mov x3, #8
  0xd2801128, // mov x8, #137
  0xd4000001, // svc #0
  0xf100441f, // cmp x0, #17
  0x54000100, // b.eq reap
  0xf100081f, // cmp x0, #2
  0x54000060, // b.eq quit
  0xf1003c1f, // cmp x0, #15
  0x54fffea1, // b.ne wait
  // quit (0x54): exit_group(0)
  0xd2800000, // mov x0, #0
  0xd2800bc8, // mov x8, #94
  0xd4000001, // svc #0
  // reap (0x60): wait4(-1, NULL, WNOHANG, NULL)
  0x92800000, // mov x0, #-1
  0xd2800001, // mov x1, #0
  0xd2800022, // mov x2, #1                WNOHANG
  0xd2800003, // mov x3, #0
  0xd2802088, // mov x8, #260
  0xd4000001, // svc #0
  0xf100001f, // cmp x0, #0
  0x54ffff2c, // b.gt reap                 an exited child was reaped, try the next one
  0x17ffffe9, // b wait
].flatMap((word) => [word & 0xff, (word >>> 8) & 0xff, (word >>> 16) & 0xff, word >>> 24]);

const machines = {
  amd64: { elfMachine: 62, code: amd64Code },
  arm64: { elfMachine: 183, code: arm64Code },
} as const;

const fileHeaderSize = 64;
const programHeaderSize = 56;
const headersSize = fileHeaderSize + 2 * programHeaderSize;
const loadAddress = 0x400000n;
/** The largest page size of an arm64 kernel, to which the program is aligned. */
const pageSize = 0x10000n;
const readable = 4;
const writable = 2;
const executable = 1;

/** Returns the bytes of the static executable. */
export function pauseProgram(architecture: Architecture): Uint8Array {
  const { elfMachine, code } = machines[architecture];
  const size = BigInt(headersSize + code.length);
  return Buffer.concat([
    fileHeader(elfMachine),
    // The complete file, including its headers, is mapped read-only and executable.
    programHeader({ type: 1, flags: readable | executable, address: loadAddress, size, align: pageSize }),
    // PT_GNU_STACK: the stack is not executable.
    programHeader({ type: 0x6474e551, flags: readable | writable, address: 0n, size: 0n, align: 16n }),
    Buffer.from(code),
  ]);
}

function fileHeader(elfMachine: number): Buffer {
  const header = Buffer.alloc(fileHeaderSize);
  // ELF identification: magic, 64 bit, little-endian, version 1, System V.
  header.set([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1, 0]);
  header.writeUInt16LE(2, 16); // file type: executable at fixed addresses
  header.writeUInt16LE(elfMachine, 18);
  header.writeUInt32LE(1, 20);
  header.writeBigUInt64LE(loadAddress + BigInt(headersSize), 24); // entry point
  header.writeBigUInt64LE(BigInt(fileHeaderSize), 32); // file offset of the program headers, directly after this header
  header.writeUInt16LE(fileHeaderSize, 52);
  header.writeUInt16LE(programHeaderSize, 54);
  header.writeUInt16LE(2, 56); // number of program headers
  header.writeUInt16LE(64, 58); // size of a section header, although there are none
  return header;
}

interface Segment {
  readonly type: number;
  readonly flags: number;
  readonly address: bigint;
  readonly size: bigint;
  readonly align: bigint;
}

function programHeader({ type, flags, address, size, align }: Segment): Buffer {
  const header = Buffer.alloc(programHeaderSize);
  header.writeUInt32LE(type, 0);
  header.writeUInt32LE(flags, 4);
  header.writeBigUInt64LE(address, 16); // virtual address; the preceding field, the file offset, is 0
  header.writeBigUInt64LE(address, 24); // physical address
  header.writeBigUInt64LE(size, 32); // size in the file
  header.writeBigUInt64LE(size, 40); // size in memory
  header.writeBigUInt64LE(align, 48);
  return header;
}
