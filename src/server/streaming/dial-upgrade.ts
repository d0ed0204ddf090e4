import type { IncomingMessage } from 'node:http';
import { request as tlsRequest } from 'node:https';
import { isIP } from 'node:net';
import { type Clock, nodeHttp, withDeadline } from '../../lib/index.ts';
import { type GrantedUpgrade, sendRequest } from '../../protocols/upgrade/index.ts';

/** The target of an upgrade request. */
export interface UpgradeTarget {
  readonly url: URL;
  readonly method: string;
  /** Request headers as alternating names and values; the header `Host` is added to them. */
  readonly headers: readonly string[];
}

export type UpgradeResponse =
  | GrantedUpgrade
  | {
      readonly kind: 'answered';
      readonly status: number;
      readonly contentType: string;
      /** The first 64 KiB of the response body. */
      readonly body: string;
    };

export type DialUpgrade = (target: UpgradeTarget, signal: AbortSignal) => Promise<UpgradeResponse>;

const responseWithinMs = 30_000;
const bodyWithinMs = 10_000;
const maxBodyBytes = 64 * 1024;
const maxHeaderBytes = 64 * 1024;

/**
 * Sends an upgrade request over a new connection. Redirects are not followed. The caller owns the
 * upgraded connection; after any other response the connection is closed. Certificates are not
 * verified, because runtimes generate theirs at start.
 */
export function upgradeDialer(clock: Clock): DialUpgrade {
  return async (target, signal) => {
    const what = `get a response from ${target.url.host}`;
    const answer = await withDeadline(
      { clock, ms: responseWithinMs, what },
      (inner) => sendRequest(createRequest(target), undefined, inner),
      signal,
    );
    if (answer.kind === 'upgraded') return answer;
    const { response } = answer;
    const body = await readBody(response, clock, signal).finally(() => response.destroy());
    return {
      kind: 'answered',
      status: response.statusCode ?? 500,
      contentType: response.headers['content-type'] ?? 'text/plain; charset=utf-8',
      body,
    };
  };
}

function createRequest({ url, method, headers }: UpgradeTarget) {
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
  const options = {
    method,
    host,
    port: url.port === '' ? undefined : Number(url.port),
    path: `${url.pathname}${url.search}`,
    headers: ['Host', url.host, ...headers, ...(method === 'POST' ? ['Content-Length', '0'] : [])],
    agent: false,
    // Each peer may end its direction while the other still sends.
    allowHalfOpen: true,
    maxHeaderSize: maxHeaderBytes,
  } as const;
  if (url.protocol !== 'https:') return nodeHttp.request(options);
  return tlsRequest({ ...options, rejectUnauthorized: false, servername: isIP(host) === 0 ? host : '' });
}

/**
 * Reads the body of an error response; at the timeout or the size limit the partial body is
 * returned.
 */
async function readBody(response: IncomingMessage, clock: Clock, signal: AbortSignal): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  const read = async () => {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      size += chunk.length;
      if (size >= maxBodyBytes) break;
    }
  };
  await withDeadline({ clock, ms: bodyWithinMs, what: 'read the response' }, read, signal).catch(() => {});
  return Buffer.concat(chunks).subarray(0, maxBodyBytes).toString();
}
