import { describeError, joinHostPort } from '../lib/index.ts';

/** Why a connection could not be made, in the words people search for. */
const words: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connect: connection refused',
  EHOSTUNREACH: 'connect: no route to host',
  ENETUNREACH: 'connect: network is unreachable',
  ETIMEDOUT: 'connect: connection timed out',
};

export function dialFailure(host: string, port: number, error: unknown): string {
  const code = codeOf(error);
  const known = code === undefined ? undefined : words[code];
  if (known !== undefined) return `dial tcp ${joinHostPort(host, port)}: ${known}`;
  if (code === 'ECONNRESET') return 'read: connection reset by peer';
  return describeError(error);
}

function codeOf(error: unknown): string | undefined {
  if (error instanceof AggregateError) return codeOf(error.errors[0]);
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return typeof code === 'string' ? code : undefined;
}
