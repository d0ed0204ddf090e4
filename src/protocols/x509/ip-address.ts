import { isIP, isIPv4 } from 'node:net';

/** The bytes of an address as certificates hold it, or undefined of what is none. A mapped IPv4 address is IPv4. */
export function ipBytes(text: string): Buffer | undefined {
  if (isIP(text) === 0 || text.includes('%')) return undefined;
  if (isIPv4(text)) return Buffer.from(text.split('.').map(Number));
  const bytes = ipv6Bytes(text);
  return isMapped(bytes) ? bytes.subarray(12) : bytes;
}

/** The one usual way to write an address, to compare by; undefined of what is none. */
export function canonicalIp(text: string): string | undefined {
  const bytes = ipBytes(text);
  return bytes === undefined ? undefined : ipText(bytes);
}

/** Of 4 or 16 bytes; undefined of anything else. */
export function ipText(bytes: Buffer): string | undefined {
  if (bytes.length === 4) return bytes.join('.');
  if (bytes.length !== 16) return undefined;
  const groups = Array.from({ length: 8 }, (_, index) => bytes.readUInt16BE(index * 2).toString(16));
  return shortened(groups);
}

/** The longest run of zero groups, the first of equals, becomes `::`. */
function shortened(groups: readonly string[]): string {
  let best = { at: 0, length: 1 };
  for (let at = 0; at < 8; at++) {
    let length = 0;
    while (groups[at + length] === '0') length++;
    if (length > best.length) best = { at, length };
  }
  if (best.length < 2) return groups.join(':');
  return `${groups.slice(0, best.at).join(':')}::${groups.slice(best.at + best.length).join(':')}`;
}

function ipv6Bytes(text: string): Buffer {
  const [before = '', after] = text.split('::');
  const [head, tail] = [groupsOf(before), after === undefined ? [] : groupsOf(after)];
  const zeros = new Array<number>(Math.max(0, 8 - head.length - tail.length)).fill(0);
  const bytes = Buffer.alloc(16);
  for (const [index, group] of [...head, ...zeros, ...tail].entries()) bytes.writeUInt16BE(group, index * 2);
  return bytes;
}

/** The end of an IPv6 address may be written as an IPv4 one. */
function groupsOf(text: string): number[] {
  return text
    .split(':')
    .filter((group) => group !== '')
    .flatMap((group) => {
      if (!group.includes('.')) return [Number.parseInt(group, 16)];
      const [a = 0, b = 0, c = 0, d = 0] = group.split('.').map(Number);
      return [a * 256 + b, c * 256 + d];
    });
}

function isMapped(bytes: Buffer): boolean {
  return bytes.subarray(0, 10).every((byte) => byte === 0) && bytes.readUInt16BE(10) === 0xffff;
}
