import {
  createPrivateKey,
  createPublicKey,
  generateKeyPair,
  generateKeyPairSync,
  type KeyObject,
} from 'node:crypto';
import { promisify } from 'node:util';

export type KeyKind = 'ec-p256' | 'rsa-2048';

/** P-256 takes a fraction of a millisecond and is made at once; RSA takes long and is made aside. */
export async function newPrivateKey(kind: KeyKind): Promise<KeyObject> {
  if (kind === 'ec-p256') return newEcKey();
  return (await promisify(generateKeyPair)('rsa', { modulusLength: 2048 })).privateKey;
}

export function newEcKey(): KeyObject {
  return generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
}

/** As other kubelets write and read it. */
export function keyPem(key: KeyObject): string {
  const type = key.asymmetricKeyType === 'ec' ? 'sec1' : key.asymmetricKeyType === 'rsa' ? 'pkcs1' : 'pkcs8';
  return key.export({ format: 'pem', type } as { format: 'pem'; type: 'pkcs8' }).toString();
}

/** The key in a PEM text that may hold certificates too; undefined when there is none that can be read. */
export function readPrivateKey(pem: string): KeyObject | undefined {
  try {
    return createPrivateKey(pem);
  } catch {
    return undefined;
  }
}

/** The public half as certificates hold it. */
export function publicKeyDer(key: KeyObject): Buffer {
  const publicKey = key.type === 'private' ? createPublicKey(key) : key;
  return publicKey.export({ format: 'der', type: 'spki' });
}
