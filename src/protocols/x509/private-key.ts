import {
  createPrivateKey,
  createPublicKey,
  generateKeyPair,
  generateKeyPairSync,
  type KeyObject,
} from 'node:crypto';
import { promisify } from 'node:util';

export type KeyKind = 'ec-p256' | 'rsa-2048';

/**
 * Generates a private key. P-256 takes a fraction of a millisecond and is generated synchronously;
 * RSA is slow and generated in the thread pool.
 */
export async function newPrivateKey(kind: KeyKind): Promise<KeyObject> {
  if (kind === 'ec-p256') return newEcKey();
  return (await promisify(generateKeyPair)('rsa', { modulusLength: 2048 })).privateKey;
}

export function newEcKey(): KeyObject {
  return generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
}

/** Encodes a private key in the PEM format of the Go kubelet. */
export function keyPem(key: KeyObject): string {
  const type = key.asymmetricKeyType === 'ec' ? 'sec1' : key.asymmetricKeyType === 'rsa' ? 'pkcs1' : 'pkcs8';
  return key.export({ format: 'pem', type } as { format: 'pem'; type: 'pkcs8' }).toString();
}

/**
 * The private key in a PEM text that may also contain certificates; undefined without a readable
 * key.
 */
export function readPrivateKey(pem: string): KeyObject | undefined {
  try {
    return createPrivateKey(pem);
  } catch {
    return undefined;
  }
}

/** The public key in the encoding of certificates. */
export function publicKeyDer(key: KeyObject): Buffer {
  const publicKey = key.type === 'private' ? createPublicKey(key) : key;
  return publicKey.export({ format: 'der', type: 'spki' });
}

/** One PEM block, which starts with `-----BEGIN label-----`. */
export interface PemBlock {
  readonly label: string;
  readonly der: Buffer;
}

const mark = /-----(BEGIN|END) ([A-Z0-9 ]{1,64})-----/g;

/**
 * All PEM blocks of a text, with any text between them. A block without its end line is skipped.
 */
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

/** Header lines of a PEM block, as in old encrypted keys, are not part of its value. */
function bodyOnly(body: string): string {
  return body
    .split(/\r?\n/)
    .filter((line) => !line.includes(':'))
    .join('');
}
