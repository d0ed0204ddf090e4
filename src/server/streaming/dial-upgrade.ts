import type { IncomingMessage } from 'node:http';
import { request as tlsRequest } from 'node:https';
import { isIP, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { type Clock, nodeHttp, onAbort, withDeadline } from '../../lib/index.ts';

/** A request to speak something else than HTTP, ready to be sent. */
export interface UpgradeTarget {
  readonly url: URL;
  readonly method: string;
  /** Names and values in turn, as they go over the wire; `Host` is added. */
  readonly headers: readonly string[];
}

export type UpgradeAnswer =
  | {
      readonly kind: 'upgraded';
      readonly socket: Duplex;
      /** What came right behind the answer. */
      readonly head: Uint8Array;
      /** Names and values in turn. */
      readonly headers: readonly string[];
    }
  | {
      readonly kind: 'answered';
      readonly status: number;
      readonly contentType: string;
      /** The beginning of it. */
      readonly body: string;
    };

export type DialUpgrade = (target: UpgradeTarget, signal: AbortSignal) => Promise<UpgradeAnswer>;

const answerWithinMs = 30_000;
const bodyWithinMs = 10_000;
const maxBodyBytes = 64 * 1024;
const maxHeaderBytes = 64 * 1024;
const keepAliveMs = 30_000;

/**
 * Asks over a connection of its own. Redirects are answers like any other, and are not followed. Whoever gets the
 * upgraded connection owns it; after any other answer nothing is left open. Certificates are not checked: runtimes
 * make them up when they start.
 */
export function upgradeDialer(clock: Clock): DialUpgrade {
  return async (target, signal) => {
    const what = `hear from ${target.url.host}`;
    const heard = await withDeadline(
      { clock, ms: answerWithinMs, what },
      (inner) => dial(target, inner),
      signal,
    );
    if (heard.kind === 'upgraded') return heard;
    const { response } = heard;
    const body = await readBody(response, clock, signal).finally(() => response.destroy());
    return {
      kind: 'answered',
      status: response.statusCode ?? 500,
      contentType: response.headers['content-type'] ?? 'text/plain; charset=utf-8',
      body,
    };
  };
}

type Heard =
  | Extract<UpgradeAnswer, { kind: 'upgraded' }>
  | { readonly kind: 'response'; readonly response: IncomingMessage };

function dial(target: UpgradeTarget, signal: AbortSignal): Promise<Heard> {
  return new Promise((resolve, reject) => {
    const asked = ask(target);
    const link = onAbort(signal, (reason) => asked.destroy(reason as Error));
    const settle = (heard: Heard) => {
      link[Symbol.dispose]();
      // Too late: whoever asked has given up, so nobody would close it.
      if (signal.aborted) asked.destroy();
      else resolve(heard);
    };
    asked.on('error', (error) => {
      link[Symbol.dispose]();
      reject(error);
    });
    asked.on('upgrade', (response, socket: Socket, head) => {
      socket.setNoDelay(true);
      socket.setKeepAlive(true, keepAliveMs);
      socket.on('error', () => {});
      settle({ kind: 'upgraded', socket, head, headers: response.rawHeaders });
    });
    asked.on('response', (response) => {
      response.on('error', () => {});
      settle({ kind: 'response', response });
    });
    asked.end();
  });
}

function ask({ url, method, headers }: UpgradeTarget) {
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
  const options = {
    method,
    host,
    port: url.port === '' ? undefined : Number(url.port),
    path: `${url.pathname}${url.search}`,
    headers: ['Host', url.host, ...headers, ...(method === 'POST' ? ['Content-Length', '0'] : [])],
    agent: false,
    // Either side may end its direction while the other still has things to say.
    allowHalfOpen: true,
    maxHeaderSize: maxHeaderBytes,
  } as const;
  if (url.protocol !== 'https:') return nodeHttp.request(options);
  return tlsRequest({ ...options, rejectUnauthorized: false, servername: isIP(host) === 0 ? host : '' });
}

/** What has come of it when time or the limit is reached is good enough. */
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
  await withDeadline({ clock, ms: bodyWithinMs, what: 'read the answer' }, read, signal).catch(() => {});
  return Buffer.concat(chunks).subarray(0, maxBodyBytes).toString();
}
