import type { IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { nodeHttp, onAbort } from '../lib/index.ts';
import { manifestLimit } from './manifest.ts';

export interface HttpAnswer {
  readonly status: number;
  readonly body: Uint8Array;
}

/** Asks for a URL. Rejects when there is no answer or it is too large; any status is an answer. */
export type HttpGet = (
  url: string,
  headers: Readonly<Record<string, readonly string[]>>,
  signal: AbortSignal,
) => Promise<HttpAnswer>;

const mostRedirects = 10;

/**
 * Follows redirects. The headers, which may hold credentials, go to the origin of the URL only, and no longer once a
 * redirect has led elsewhere.
 */
export const httpGet: HttpGet = async (url, headers, signal) => {
  const { origin } = new URL(url);
  let at = new URL(url);
  let sent = headers;
  for (let hops = 0; hops <= mostRedirects; hops++) {
    if (at.origin !== origin) sent = {};
    const answer = await getOnce(at, sent, signal);
    if (answer.location === undefined) return answer;
    at = new URL(answer.location, at);
  }
  throw new Error(`more than ${mostRedirects} redirects`);
};

type Answer = HttpAnswer & { readonly location: string | undefined };

function getOnce(
  url: URL,
  headers: Readonly<Record<string, readonly string[]>>,
  signal: AbortSignal,
): Promise<Answer> {
  return new Promise<Answer>((resolve, reject) => {
    const request = url.protocol === 'https:' ? httpsRequest : nodeHttp.request;
    const sent = Object.fromEntries(Object.entries(headers).map(([name, values]) => [name, [...values]]));
    const asked = request(url, { method: 'GET', headers: sent, agent: false });
    const abort = onAbort(signal, (reason) => asked.destroy(reason as Error));
    asked.on('error', (error) => {
      abort[Symbol.dispose]();
      reject(error);
    });
    asked.on('response', (response) => {
      readAnswer(response)
        .then(resolve, (error) => {
          asked.destroy();
          reject(error);
        })
        .finally(() => abort[Symbol.dispose]());
    });
    asked.end();
  });
}

async function readAnswer(response: IncomingMessage): Promise<Answer> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response as AsyncIterable<Uint8Array>) {
    size += chunk.byteLength;
    if (size >= manifestLimit) throw new Error(`the answer must be smaller than ${manifestLimit} bytes`);
    chunks.push(chunk);
  }
  const status = response.statusCode ?? 0;
  const moved = [301, 302, 303, 307, 308].includes(status);
  return { status, body: Buffer.concat(chunks), location: moved ? response.headers.location : undefined };
}
