/** One `-----BEGIN label-----` block. */
export interface PemBlock {
  readonly label: string;
  readonly der: Buffer;
}

const block = /-----BEGIN ([A-Z0-9 ]+)-----([\s\S]*?)-----END \1-----/g;

/** All blocks of a text, whatever stands between them. */
export function readPem(text: string): PemBlock[] {
  return Array.from(text.matchAll(block), ([, label = '', body = '']) => ({
    label,
    der: Buffer.from(bodyOnly(body), 'base64'),
  }));
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
