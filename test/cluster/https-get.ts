import { type RequestOptions, request } from 'node:https';

export interface Answer {
  readonly status: number;
  readonly body: string;
}

const answerWithinMs = 10_000;

/** One request on a connection of its own, so that a server that went away and came back is met anew. */
export function httpsGet(
  url: string,
  tls: Pick<RequestOptions, 'ca' | 'cert' | 'key' | 'headers'>,
): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const signal = AbortSignal.timeout(answerWithinMs);
  const call = request(url, { ...tls, agent: false, signal }, (response) => {
    let body = '';
    response.setEncoding('utf8');
    response.on('data', (chunk) => {
      body += chunk;
    });
    response.on('end', () => resolve({ status: response.statusCode ?? 0, body }));
    response.on('error', reject);
  });
  call.on('error', reject);
  call.end();
  return promise;
}
