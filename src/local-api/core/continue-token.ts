import { isJsonObject } from '../../api/index.ts';
import { badRequest } from './refusals.ts';

/** Where a list goes on. */
export interface ListPosition {
  /** The moment all pages are of; undefined for whoever goes on in spite of a token that was too old. */
  readonly version: number | undefined;
  /** The first key that may be told, in the order of keys of what is listed. */
  readonly start: string;
}

const tokenVersion = 'meta.k8s.io/v1';

export function encodeContinue({ version, start }: ListPosition): string {
  return Buffer.from(JSON.stringify({ v: tokenVersion, rv: version ?? -1, start })).toString('base64url');
}

/** Throws a StatusError for a token that is none of ours. */
export function decodeContinue(token: string): ListPosition {
  const { v, rv, start } = parsed(token);
  if (v !== tokenVersion) throw bad(`: server does not recognize this encoded version ${v ?? ''}`);
  if (typeof rv !== 'number' || !Number.isSafeInteger(rv) || rv === 0 || rv < -1)
    throw bad(`: incorrect encoded start resourceVersion (version ${tokenVersion})`);
  if (typeof start !== 'string' || start === '')
    throw bad(`: encoded start key empty (version ${tokenVersion})`);
  if (start.split('/').some((part) => part === '..' || part === '.' || part === '')) throw bad(`: ${start}`);
  return { version: rv === -1 ? undefined : rv, start };
}

function parsed(token: string): { readonly v?: unknown; readonly rv?: unknown; readonly start?: unknown } {
  try {
    const value: unknown = JSON.parse(Buffer.from(token, 'base64url').toString());
    if (isJsonObject(value)) return value;
  } catch {
    // Told below.
  }
  throw bad('');
}

function bad(why: string): Error {
  return badRequest(`invalid continue token: continue key is not valid${why}`);
}
