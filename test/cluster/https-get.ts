import { type RequestOptions, request } from 'node:https';

export interface Answer {
  readonly status: number;
  readonly body: string;
}

const answerWithinMs = 30_000;

type Identity = Pick<RequestOptions, 'ca' | 'cert' | 'key' | 'headers'>;

/** Sends one request over a new connection, so that a restarted server is reached as well. */
export function httpsGet(url: string, tls: Identity): Promise<Answer> {
  return send(url, tls, '');
}

export function httpsPost(url: string, tls: Identity, body: object): Promise<Answer> {
  const headers = { ...tls.headers, 'content-type': 'application/json' };
  return send(url, { ...tls, method: 'POST', headers }, JSON.stringify(body));
}

/** Sends a request of any method; the body may be omitted. */
export function httpsSend(
  url: string,
  tls: Identity,
  { method, body, contentType = 'application/json' }: Sent,
): Promise<Answer> {
  if (body === undefined) return send(url, { ...tls, method }, '');
  const headers = { ...tls.headers, 'content-type': contentType };
  return send(url, { ...tls, method, headers }, JSON.stringify(body));
}

export interface Sent {
  readonly method: string;
  readonly body?: unknown;
  readonly contentType?: string | undefined;
}

function send(url: string, options: Identity & { readonly method?: string }, body: string): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const signal = AbortSignal.timeout(answerWithinMs);
  const call = request(url, { ...options, agent: false, signal }, (response) => {
    let answer = '';
    response.setEncoding('utf8');
    response.on('data', (chunk) => {
      answer += chunk;
    });
    response.on('end', () => resolve({ status: response.statusCode ?? 0, body: answer }));
    response.on('error', reject);
  });
  call.on('error', reject);
  call.end(body);
  return promise;
}
