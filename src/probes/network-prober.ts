import { connect } from 'node:net';
import {
  type Clock,
  describeError,
  followRedirects,
  type HttpRequest,
  type HttpResponse,
  isKind,
  joinHostPort,
  KubelingError,
  onAbort,
  type SendHttp,
  withDeadline,
} from '../lib/index.ts';
import { type GrpcProbeDeps, probeGrpc } from './grpc-probe.ts';
import type { ExecAction, ProbeRequest, ProbeResponse, Prober } from './probe-request.ts';
import { failure, type HttpAction, maxOutputBytes, type TcpAction } from './probe-request.ts';

export interface NetworkProberDeps extends GrpcProbeDeps {
  readonly dialHttp: SendHttp;
}

/** Runs HTTP, TCP and gRPC probes over the node's network. */
export function networkProber(deps: NetworkProberDeps): Prober {
  return {
    async probe(request, signal) {
      const { action } = request;
      signal.throwIfAborted();
      switch (action.kind) {
        case 'http':
          return await probeHttp({ ...request, action }, deps, signal);
        case 'tcp':
          return await probeTcp({ ...request, action }, deps.clock, signal);
        case 'grpc':
          return await probeGrpc({ ...request, action }, deps, signal);
        case 'exec':
          throw new KubelingError('PROBE_UNASKABLE', 'An exec probe cannot run over the network');
      }
    },
  };
}

/** Adds exec probes to a network prober. */
export function withCommands(
  network: Prober,
  commands: { probe(request: ProbeRequest<ExecAction>, signal: AbortSignal): Promise<ProbeResponse> },
): Prober {
  return {
    probe(request, signal) {
      const { action } = request;
      return action.kind === 'exec'
        ? commands.probe({ ...request, action }, signal)
        : network.probe(request, signal);
    },
  };
}

/**
 * Sends a GET request and follows redirects on the same host. A bad status, a timeout and a
 * connection failure fail the probe. Rejects for a truncated response, which does not show the
 * container's health.
 */
async function probeHttp(
  { action: { request }, timeoutMs }: ProbeRequest<HttpAction>,
  { clock, dialHttp }: { readonly clock: Clock; readonly dialHttp: SendHttp },
  signal: AbortSignal,
): Promise<ProbeResponse> {
  const limits = { clock, ms: timeoutMs, what: 'get a response' };
  const send = (inner: AbortSignal) => followRedirects(dialHttp, request, maxOutputBytes, inner);
  try {
    const { reply } = await withDeadline(limits, send, signal);
    return responseOf(reply);
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof KubelingError && error.code === 'HTTP_CUT_OFF') throw error;
    return failure(`Get "${urlOf(request)}": ${why(error, request)}`);
  }
}

function responseOf({ status, body }: HttpResponse): ProbeResponse {
  // The event of a failed probe omits the body of the response, because it may be confidential.
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

/** A TCP probe succeeds when the port accepts a connection. */
function probeTcp(
  { action: { host, port }, timeoutMs }: ProbeRequest<TcpAction>,
  clock: Clock,
  signal: AbortSignal,
): Promise<ProbeResponse> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port });
    const end = () => {
      timer.cancel();
      link[Symbol.dispose]();
      socket.destroy();
    };
    const finish = (given: ProbeResponse) => {
      end();
      resolve(given);
    };
    const timer = clock.timer(timeoutMs, () =>
      finish(failure(`dial tcp ${joinHostPort(host, port)}: i/o timeout`)),
    );
    socket.once('connect', () => finish({ is: 'success', output: '' }));
    // The error listener stays registered for the socket's lifetime, because an unhandled error
    // event ends the process.
    socket.on('error', (error) => finish(failure(dialFailure(host, port, error))));
    const link = onAbort(signal, (reason) => {
      end();
      reject(reason);
    });
  });
}

/** The messages of the Go kubelet for connection errors. */
const dialErrors: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connect: connection refused',
  EHOSTUNREACH: 'connect: no route to host',
  ENETUNREACH: 'connect: network is unreachable',
  ETIMEDOUT: 'connect: connection timed out',
};

function dialFailure(host: string, port: number, error: unknown): string {
  const code = codeOf(error);
  const known = code === undefined ? undefined : dialErrors[code];
  if (known !== undefined) return `dial tcp ${joinHostPort(host, port)}: ${known}`;
  if (code === 'ECONNRESET') return 'read: connection reset by peer';
  return describeError(error);
}

function codeOf(error: unknown): string | undefined {
  if (error instanceof AggregateError) return codeOf(error.errors[0]);
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return typeof code === 'string' ? code : undefined;
}
