import { KubelingError } from '../lib/index.ts';
import { type Architecture, buildImage } from './oci-image.ts';
import type { TarEntry } from './tar.ts';

/** The image with a small userland for self-checks and examples. */
export const busyboxImageName = 'localhost/kubeling/busybox:1';

export interface Busybox {
  readonly architecture: Architecture;
  /** The bytes of a static busybox executable. */
  readonly program: Uint8Array;
  /** The applet names as printed by `busybox --list`. */
  readonly applets: readonly string[];
}

/** Builds the image of a busybox userland; throws when the program cannot run in it. */
export function busyboxImage({ architecture, program, applets }: Busybox): Uint8Array {
  checkStatic(program, architecture);
  const links = [...new Set(applets)].filter((name) => name !== 'busybox').map(appletLink);
  return buildImage({
    name: busyboxImageName,
    architecture,
    files: [
      { path: 'bin/busybox', kind: 'file', mode: 0o755, data: program },
      ...links,
      ...['dev', 'etc', 'home', 'proc', 'root', 'sys', 'usr/bin', 'var'].map(directory),
      { path: 'tmp', kind: 'directory', mode: 0o1777 },
      textFile('etc/passwd', 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/home:/bin/false\n'),
      textFile('etc/group', 'root:x:0:\nnobody:x:65534:\n'),
    ],
    command: ['sh'],
    env: { PATH: '/usr/bin:/bin' },
  });
}

function appletLink(name: string): TarEntry {
  return { path: `bin/${name}`, kind: 'link', target: 'busybox' };
}

function directory(path: string): TarEntry {
  return { path, kind: 'directory', mode: 0o755 };
}

function textFile(path: string, text: string): TarEntry {
  return { path, kind: 'file', mode: 0o644, data: Buffer.from(text) };
}

const elfMachines: Readonly<Record<Architecture, number>> = { amd64: 62, arm64: 183 };
const interpreterSegment = 3;

/**
 * The image has no libraries, so the program must be static and built for the image's architecture.
 */
function checkStatic(program: Uint8Array, architecture: Architecture): void {
  const elf = Buffer.from(program.buffer, program.byteOffset, program.byteLength);
  const isElf = elf.length > 64 && elf.readUInt32BE(0) === 0x7f454c46 && elf[4] === 2;
  if (!isElf || elf.readUInt16LE(18) !== elfMachines[architecture]) {
    throw badBusybox(`must be a 64-bit ELF program for ${architecture}`);
  }
  if (segmentTypes(elf).includes(interpreterSegment)) {
    throw badBusybox('must be linked statically (Debian: package busybox-static)');
  }
}

function segmentTypes(elf: Buffer): number[] {
  const start = Number(elf.readBigUInt64LE(32));
  const size = elf.readUInt16LE(54);
  const count = elf.readUInt16LE(56);
  if (start + size * count > elf.length) throw badBusybox('must not be cut off');
  return Array.from({ length: count }, (_, index) => elf.readUInt32LE(start + index * size));
}

function badBusybox(rule: string): KubelingError {
  return new KubelingError('CONTAINERD_IMAGE', `Cannot make a busybox image as the program ${rule}`);
}
