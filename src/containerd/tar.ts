import { KubelingError } from '../lib/index.ts';

/** All entries belong to root with date 1970, so that equal entries give equal bytes. */
export type TarEntry = { readonly path: string } & (
  | { readonly kind: 'file'; readonly mode: number; readonly data: Uint8Array }
  | { readonly kind: 'directory'; readonly mode: number }
  /** A symbolic link to `target`. */
  | { readonly kind: 'link'; readonly target: string }
);

const blockSize = 512;
const typeFlags = { file: '0', link: '2', directory: '5', extended: 'x' } as const;

interface Header {
  readonly name: string;
  readonly type: keyof typeof typeFlags;
  readonly mode: number;
  readonly size: number;
  readonly target: string;
}

/** A POSIX tar archive (ustar, with pax records where ustar is too small), sorted by path. */
export function tarArchive(entries: readonly TarEntry[]): Uint8Array {
  const sorted = entries.toSorted((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0));
  const blocks = sorted.flatMap((entry, index) => {
    checkPath(entry.path);
    if (entry.path === sorted[index - 1]?.path) throw badEntry(entry.path, 'must be named once');
    return entryBlocks(entry);
  });
  return Buffer.concat([...blocks, Buffer.alloc(2 * blockSize)]);
}

function checkPath(path: string): void {
  const parts = path.split('/');
  if (
    path === '' ||
    path.includes('\0') ||
    parts.some((part) => part === '' || part === '.' || part === '..')
  ) {
    throw badEntry(path, 'must be a clean path relative to the root');
  }
}

function badEntry(path: string, rule: string): KubelingError {
  return new KubelingError(
    'CONTAINERD_IMAGE',
    `Cannot pack a file as its path ${rule}: current value is ${JSON.stringify(path)}`,
  );
}

function entryBlocks(entry: TarEntry): Uint8Array[] {
  const name = entry.kind === 'directory' ? `${entry.path}/` : entry.path;
  const target = entry.kind === 'link' ? entry.target : '';
  const data = entry.kind === 'file' ? entry.data : new Uint8Array();
  const mode = entry.kind === 'link' ? 0o777 : entry.mode;
  const records = { ...(fits(name) ? {} : { path: name }), ...(fits(target) ? {} : { linkpath: target }) };
  return [
    ...extendedBlocks(records),
    header({ name: shorten(name), type: entry.kind, mode, size: data.length, target: shorten(target) }),
    ...padded(data),
  ];
}

/** Whether the text fits into a ustar header: at most 100 printable ASCII characters. */
function fits(text: string): boolean {
  return /^[\x20-\x7e]{0,100}$/.test(text);
}

/**
 * A shortened name in the ustar header, for readers without pax support; the pax record has the
 * full name.
 */
function shorten(text: string): string {
  return fits(text) ? text : text.replaceAll(/[^\x20-\x7e]/g, '_').slice(-100);
}

function extendedBlocks(records: Readonly<Record<string, string>>): Uint8Array[] {
  const body = Buffer.from(Object.entries(records).map(paxRecord).join(''));
  if (body.length === 0) return [];
  const name = 'PaxHeaders/extended';
  return [header({ name, type: 'extended', mode: 0o644, size: body.length, target: '' }), ...padded(body)];
}

/** A pax record "27 path=...\n", where the number is the length of the whole record. */
function paxRecord([key, value]: [string, string]): string {
  const rest = ` ${key}=${value}\n`;
  const restLength = Buffer.byteLength(rest);
  let length = restLength + 1;
  while (String(length).length + restLength !== length) length = String(length).length + restLength;
  return `${length}${rest}`;
}

function padded(data: Uint8Array): Uint8Array[] {
  const rest = data.length % blockSize;
  return rest === 0 ? [data] : [data, Buffer.alloc(blockSize - rest)];
}

function header(fields: Header): Uint8Array {
  const block = Buffer.alloc(blockSize);
  const octal = (value: number, at: number, width: number) =>
    block.write(`${value.toString(8).padStart(width - 1, '0')}\0`, at, 'latin1');
  block.write(fields.name, 0, 'latin1');
  octal(fields.mode, 100, 8);
  octal(0, 108, 8);
  octal(0, 116, 8);
  octal(fields.size, 124, 12);
  octal(0, 136, 12);
  block.write(typeFlags[fields.type], 156, 'latin1');
  block.write(fields.target, 157, 'latin1');
  block.write('ustar\u000000', 257, 'latin1');
  writeChecksum(block);
  return block;
}

/** The checksum of a header: the sum of its bytes, with the checksum field counted as spaces. */
function writeChecksum(block: Buffer): void {
  block.fill(' ', 148, 156);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
}
