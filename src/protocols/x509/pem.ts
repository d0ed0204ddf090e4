/** One `-----BEGIN label-----` block. */
export interface PemBlock {
  readonly label: string;
  readonly der: Buffer;
}

const mark = /-----(BEGIN|END) ([A-Z0-9 ]{1,64})-----/g;

/** All blocks of a text, whatever stands between them. A block that another one begins in was cut off, and is left out. */
export function readPem(text: string): PemBlock[] {
  const blocks: PemBlock[] = [];
  let open: { readonly label: string; readonly from: number } | undefined;
  for (const { 0: all, 1: kind, 2: label = '', index } of text.matchAll(mark)) {
    if (kind === 'BEGIN') open = { label, from: index + all.length };
    else if (open?.label === label) {
      blocks.push({ label, der: Buffer.from(bodyOnly(text.slice(open.from, index)), 'base64') });
      open = undefined;
    }
  }
  return blocks;
}

export function writePem({ label, der }: PemBlock): string {
  const lines = der.toString('base64').match(/.{1,64}/g) ?? [];
  return [`-----BEGIN ${label}-----`, ...lines, `-----END ${label}-----`, ''].join('\n');
}

/** Headers, as old encrypted keys have them, are no part of the value. */
function bodyOnly(body: string): string {
  return body
    .split(/\r?\n/)
    .filter((line) => !line.includes(':'))
    .join('');
}
