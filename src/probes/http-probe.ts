import {
  type Clock,
  followRedirects,
  type HttpRequest,
  type HttpResponse,
  isKind,
  joinHostPort,
  KubelingError,
  type SendHttp,
  withDeadline,
} from '../lib/index.ts';
import { dialFailure } from './dial-failure.ts';
import {
  failure,
  type HttpAction,
  maxOutputBytes,
  type ProbeAnswer,
  type ProbeQuestion,
} from './question.ts';

/**
 * One GET, and those it leads to on the same host. Whoever answers badly, too late or not at all has failed. Rejects for
 * an answer that ends in its middle: it says nothing of how the container is.
 */
export async function askHttp(
  { action: { request }, timeoutMs }: ProbeQuestion<HttpAction>,
  { clock, dialHttp }: { readonly clock: Clock; readonly dialHttp: SendHttp },
  signal: AbortSignal,
): Promise<ProbeAnswer> {
  const limits = { clock, ms: timeoutMs, what: 'get an answer' };
  const ask = (inner: AbortSignal) => followRedirects(dialHttp, request, maxOutputBytes, inner);
  try {
    const { reply } = await withDeadline(limits, ask, signal);
    return judged(reply);
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof KubelingError && error.code === 'HTTP_CUT_OFF') throw error;
    return failure(`Get "${urlOf(request)}": ${why(error, request)}`);
  }
}

function judged({ status, body }: HttpResponse): ProbeAnswer {
  // What the container says with a failure stays out of events: it may be meant for nobody.
  if (status < 200 || status >= 400) return failure(`HTTP probe failed with statuscode: ${status}`);
  const text = body.toString('utf8');
  if (status < 300) return { is: 'success', output: text };
  return { is: 'warning', output: `Probe terminated redirects, Response body: ${text}` };
}

function urlOf({ scheme, host, port, target }: HttpRequest): string {
  return `${scheme}://${joinHostPort(host, port)}${target}`;
}

function why(error: unknown, { host, port }: HttpRequest): string {
  return isKind(error, 'DeadlineExceeded')
    ? 'context deadline exceeded (Client.Timeout exceeded while awaiting headers)'
    : dialFailure(host, port, error);
}
