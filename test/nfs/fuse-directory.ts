/**
 * A FUSE file system with one file, served by this process and mounted in the real kernel. While
 * the control directory contains a file `silent`, no request is answered and every caller is stuck;
 * with a file `gone` the server exits. Usage: fuse-directory.ts <directory> <control directory>
 */
import { spawn } from 'node:child_process';
import { constants, existsSync, openSync, read, writeSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';

const [directory = '', control = ''] = process.argv.slice(2);
const content = Buffer.from('served\n');
const fileName = 'canary';
const [rootId, fileId] = [1n, 2n];
const lookEveryMs = 50;
const enoent = -2;
const enosys = -38;

const operation = {
  lookup: 1,
  forget: 2,
  getattr: 3,
  open: 14,
  read: 15,
  statfs: 17,
  release: 18,
  flush: 25,
  init: 26,
  opendir: 27,
  readdir: 28,
  releasedir: 29,
  access: 34,
  interrupt: 36,
  batchForget: 42,
} as const;

function attributes(id: bigint): Buffer {
  const buffer = Buffer.alloc(88);
  buffer.writeBigUInt64LE(id, 0);
  buffer.writeBigUInt64LE(id === fileId ? BigInt(content.length) : 0n, 8);
  buffer.writeUInt32LE(id === fileId ? 0o100644 : 0o40755, 60);
  buffer.writeUInt32LE(1, 64);
  buffer.writeUInt32LE(4_096, 80);
  return buffer;
}

function entry(id: bigint): Buffer {
  const head = Buffer.alloc(40);
  head.writeBigUInt64LE(id, 0);
  return Buffer.concat([head, attributes(id)]);
}

function listed(offset: number): Buffer {
  if (offset > 0) return Buffer.alloc(0);
  const padded = Math.ceil(fileName.length / 8) * 8;
  const buffer = Buffer.alloc(24 + padded);
  buffer.writeBigUInt64LE(fileId, 0);
  buffer.writeBigUInt64LE(1n, 8);
  buffer.writeUInt32LE(fileName.length, 16);
  buffer.write(fileName, 24);
  return buffer;
}

function initialized(request: Buffer): Buffer {
  const buffer = Buffer.alloc(64);
  buffer.writeUInt32LE(7, 0);
  buffer.writeUInt32LE(31, 4);
  buffer.writeUInt32LE(request.readUInt32LE(48), 8);
  buffer.writeUInt32LE(4_096, 20);
  return buffer;
}

/**
 * The reply to a request of the kernel: data, an error number, or undefined for requests without a
 * reply.
 */
function answerTo(code: number, node: bigint, request: Buffer): Buffer | number | undefined {
  switch (code) {
    case operation.init:
      return initialized(request);
    case operation.lookup:
      return request.toString('utf8', 40, request.length - 1) === fileName ? entry(fileId) : enoent;
    case operation.getattr:
      return Buffer.concat([Buffer.alloc(16), attributes(node)]);
    case operation.open:
    case operation.opendir:
      return Buffer.alloc(16);
    case operation.read: {
      const offset = Number(request.readBigUInt64LE(48));
      return content.subarray(offset, offset + request.readUInt32LE(56));
    }
    case operation.readdir:
      return node === rootId ? listed(Number(request.readBigUInt64LE(48))) : Buffer.alloc(0);
    case operation.statfs: {
      const facts = Buffer.alloc(80);
      for (const at of [0, 8, 16]) facts.writeBigUInt64LE(1_024n, at);
      for (const at of [40, 48]) facts.writeUInt32LE(4_096, at);
      return facts;
    }
    case operation.release:
    case operation.releasedir:
    case operation.flush:
    case operation.access:
      return Buffer.alloc(0);
    case operation.forget:
    case operation.batchForget:
    case operation.interrupt:
      return undefined;
    default:
      return enosys;
  }
}

const device = openSync('/dev/fuse', constants.O_RDWR);

function answer(request: Buffer): void {
  const reply = answerTo(request.readUInt32LE(4), request.readBigUInt64LE(16), request);
  if (reply === undefined) return;
  const body = typeof reply === 'number' ? Buffer.alloc(0) : reply;
  const head = Buffer.alloc(16);
  head.writeUInt32LE(16 + body.length, 0);
  head.writeInt32LE(typeof reply === 'number' ? reply : 0, 4);
  request.copy(head, 8, 8, 16);
  try {
    writeSync(device, Buffer.concat([head, body]));
  } catch {
    // The reply fails because the process that made the request was killed.
  }
}

const retained: Buffer[] = [];
const isSilent = () => existsSync(join(control, 'silent'));
setInterval(() => {
  if (existsSync(join(control, 'gone'))) process.exit(0);
  if (!isSilent()) for (const request of retained.splice(0)) answer(request);
}, lookEveryMs).unref();

/** The next request of the kernel; undefined when the kernel withdrew it during the read. */
async function nextRequest(buffer: Buffer): Promise<Buffer | undefined> {
  try {
    const { bytesRead } = await promisify(read)(device, buffer, 0, buffer.length, null);
    return Buffer.from(buffer.subarray(0, bytesRead));
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    // EPERM means that the file system is not mounted yet.
    if (code === 'EPERM') await sleep(lookEveryMs);
    else if (!['ENOENT', 'EINTR', 'EAGAIN'].includes(code)) throw error;
    return undefined;
  }
}

/** Serves requests until the file system is unmounted. */
async function serve(): Promise<void> {
  const buffer = Buffer.alloc(1024 * 1024);
  for (;;) {
    const request = await nextRequest(buffer);
    if (request === undefined) continue;
    if (isSilent()) retained.push(request);
    else answer(request);
  }
}

const options = 'fd=3,rootmode=40000,user_id=0,group_id=0,allow_other';
spawn('mount', ['-i', '-t', 'fuse', '-o', options, 'served', directory], {
  stdio: ['ignore', 'inherit', 'inherit', device],
});
await serve().catch(() => {});
process.exit(0);
