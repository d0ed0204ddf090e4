import { sign, verify } from 'node:crypto';
import { isJsonObject, type JsonObject } from '../../api/index.ts';
import type { TokenKey, TokenKeys } from './token-keys.ts';

/** Longer than any token that says something; what is longer is not even looked at. */
const longestToken = 16_384;

/** A JSON web token in its compact form. */
export function signWebToken(claims: object, { id, algorithm, privateKey }: TokenKey): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const signed = `${part({ alg: algorithm, kid: id })}.${part(claims)}`;
  const signature = sign('sha256', Buffer.from(signed), { key: privateKey, dsaEncoding: 'ieee-p1363' });
  return `${signed}.${signature.toString('base64url')}`;
}

/** What stands in a token that one of the keys has signed; undefined for any other text. Times are not looked at. */
export function readWebToken(token: string, keys: TokenKeys): JsonObject | undefined {
  const parts = token.split('.');
  const [head = '', body = '', signature = ''] = parts;
  if (token.length > longestToken || parts.length !== 3) return undefined;
  const header = jsonPart(head);
  const key = keys.find(({ id, algorithm }) => id === header?.['kid'] && algorithm === header['alg']);
  if (key === undefined || !isSigned(`${head}.${body}`, signature, key)) return undefined;
  return jsonPart(body);
}

function isSigned(text: string, signature: string, { publicKey }: TokenKey): boolean {
  const bytes = Buffer.from(signature, 'base64url');
  return verify('sha256', Buffer.from(text), { key: publicKey, dsaEncoding: 'ieee-p1363' }, bytes);
}

function jsonPart(part: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(part, 'base64url').toString('utf8'));
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
