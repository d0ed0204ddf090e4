import { createHash, createPublicKey, type KeyObject } from 'node:crypto';
import type { JsonObject } from '../../api/index.ts';
import type { Logger } from '../../lib/index.ts';
import {
  keyPem,
  newEcKey,
  publicKeyDer,
  readPem,
  readPrivateKey,
  writePem,
} from '../../protocols/x509/index.ts';
import type { PlainResponse } from '../http/server-deps.ts';
import type { TokenIssuer } from '../kinds/index.ts';
import type { CredentialFiles } from './credential-files.ts';

/** A signing key for tokens. */
export interface TokenKey {
  /** Identifies the key in tokens and in the published key set. */
  readonly id: string;
  readonly algorithm: 'ES256' | 'RS256';
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
}

/** The signing keys for tokens: the first one signs; all of them verify. */
export type TokenKeys = readonly [TokenKey, ...TokenKey[]];

export interface TokenKeysDeps {
  readonly files: CredentialFiles;
  readonly log: Logger;
  readonly path: string;
}

/** Loads or creates the signing keys. A file without a usable key is set aside. */
export async function openTokenKeys({ files, log, path }: TokenKeysDeps): Promise<TokenKeys> {
  const text = await files.read(path);
  const [first, ...more] = readPem(text ?? '').flatMap(({ label, der }) =>
    tokenKeyOf(writePem({ label, der })),
  );
  if (first !== undefined) return [first, ...more];
  if (text !== undefined) {
    await files.replace(`${path}.broken`, text, 0o600);
    log.warn(
      'Created a new service account key because the old one is unreadable: issued tokens are invalid',
      { file: path, kept: `${path}.broken` },
    );
  }
  const key = newEcKey();
  await files.replace(path, keyPem(key), 0o600);
  return [withId(key, 'ES256')];
}

/** The signing key in a PEM text; empty for unsupported keys. */
function tokenKeyOf(pem: string): TokenKey[] {
  const key = readPrivateKey(pem);
  if (key?.asymmetricKeyType === 'rsa') return [withId(key, 'RS256')];
  return key?.asymmetricKeyDetails?.namedCurve === 'prime256v1' ? [withId(key, 'ES256')] : [];
}

function withId(privateKey: KeyObject, algorithm: TokenKey['algorithm']): TokenKey {
  const id = createHash('sha256').update(publicKeyDer(privateKey)).digest('base64url');
  return { id, algorithm, privateKey, publicKey: createPublicKey(privateKey) };
}

/** The JSON Web Key Set at `/openid/v1/jwks`. */
export function jsonWebKeys(keys: TokenKeys): JsonObject {
  return {
    keys: keys.map(({ id, algorithm, publicKey }) => ({
      use: 'sig',
      ...(publicKey.export({ format: 'jwk' }) as JsonObject),
      kid: id,
      alg: algorithm,
    })),
  };
}

/** The OpenID discovery document at `/.well-known/openid-configuration`. */
export function openidConfiguration(issuer: string, server: string, keys: TokenKeys): JsonObject {
  return {
    issuer,
    jwks_uri: `${server.replace(/\/$/, '')}/openid/v1/jwks`,
    response_types_supported: ['id_token'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: [...new Set(keys.map(({ algorithm }) => algorithm))],
  };
}

export interface IssuerDocumentsDeps {
  readonly tokens: Pick<TokenIssuer, 'issuer'>;
  readonly keys: TokenKeys;
  /** The server URL; read with each request, because it is known only once the server listens. */
  readonly server: () => string;
}

/** The documents of the token issuer, by path. */
export function issuerDocuments({
  tokens,
  keys,
  server,
}: IssuerDocumentsDeps): Readonly<Record<string, () => PlainResponse>> {
  const page = (type: string, value: object): PlainResponse => ({
    status: 200,
    headers: { 'content-type': type, 'cache-control': 'public, max-age=3600' },
    body: JSON.stringify(value),
  });
  return {
    '/.well-known/openid-configuration': () =>
      page('application/json', openidConfiguration(tokens.issuer, server(), keys)),
    '/openid/v1/jwks': () => page('application/jwk-set+json', jsonWebKeys(keys)),
  };
}
