import { unescape as percentDecode } from 'node:querystring';

/** A request target such as `/pods?watch=1`, divided at its first `?`. The query is parsed when it is first read. */
export interface RequestTarget {
  /** The path as the client sent it, percent-encoded. */
  readonly writtenPath: string;
  /** The number of characters of path and query together. */
  readonly length: number;
  readonly query: URLSearchParams;
}

/**
 * The maximum length of a request target from a client without credentials. Commands of exec are
 * sent in the query, but need credentials.
 */
export const maxAnonymousTarget = 64 * 1024;

/**
 * Divides a request target without parsing the query, so that a client without credentials cannot
 * make the server parse it: read `query` only after authentication.
 */
export function splitTarget(target: string): RequestTarget {
  const end = target.indexOf('?');
  let query: URLSearchParams | undefined;
  return {
    writtenPath: end < 0 ? target : target.slice(0, end),
    length: target.length,
    get query() {
      query ??= parseQuery(end < 0 ? '' : target.slice(end + 1));
      return query;
    },
  };
}

/**
 * Parses a query as `new URLSearchParams(text)` does, but in linear time: the constructor of
 * Node.js takes seconds for 500,000 names without `=`.
 */
export function parseQuery(text: string): URLSearchParams {
  const params = new URLSearchParams();
  for (const pair of text.split('&')) {
    if (pair === '') continue;
    const equals = pair.indexOf('=');
    if (equals < 0) params.append(decode(pair), '');
    else params.append(decode(pair.slice(0, equals)), decode(pair.slice(equals + 1)));
  }
  return params;
}

function decode(text: string): string {
  const spaced = text.includes('+') ? text.replaceAll('+', ' ') : text;
  if (!spaced.includes('%')) return spaced;
  // Like URLSearchParams: bytes that are not UTF-8 are replaced, and a `%` without two digits is
  // kept.
  return percentDecode(spaced.toWellFormed().replaceAll(/\P{ASCII}+/gu, encodeURIComponent));
}
