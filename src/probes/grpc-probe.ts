import {
  type Clock,
  describeError,
  formatDurationMs,
  joinHostPort,
  type Random,
  withDeadline,
} from '../lib/index.ts';
import { GrpcChannel, GrpcError } from '../protocols/grpc/index.ts';
import { Health } from './gen/health.ts';
import {
  failure,
  type GrpcAction,
  type ProbeRequest,
  type ProbeResponse,
  userAgent,
} from './probe-request.ts';

export interface GrpcProbeDeps {
  readonly clock: Clock;
  readonly random: Random;
}

const retryMs = 100;

/**
 * Calls the gRPC health service of the container without TLS. Retries the connection until the
 * timeout.
 */
export async function probeGrpc(
  request: ProbeRequest<GrpcAction>,
  deps: GrpcProbeDeps,
  signal: AbortSignal,
): Promise<ProbeResponse> {
  const { action, timeoutMs } = request;
  const target = joinHostPort(action.host, action.port);
  using channel = new GrpcChannel({ ...deps, target, baseBackoffMs: retryMs, maxBackoffMs: retryMs });
  const progress: Progress = { is: 'connecting', why: undefined };
  try {
    const limits = { clock: deps.clock, ms: timeoutMs, what: 'check its health' };
    return await withDeadline(
      limits,
      (inner) => checkHealth(channel, request, deps, progress, inner),
      signal,
    );
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    const limit = formatDurationMs(timeoutMs);
    if (progress.is === 'connected') return failure(`timeout: health rpc did not complete within ${limit}`);
    const because = describeError(progress.why ?? error);
    return failure(`timeout: failed to connect service "${target}" within ${limit}: ${because}`);
  }
}

/** The progress of the probe, for the message at the timeout. */
interface Progress {
  is: 'connecting' | 'connected';
  why: unknown;
}

async function checkHealth(
  channel: GrpcChannel,
  { action: { service }, timeoutMs }: ProbeRequest<GrpcAction>,
  { clock }: GrpcProbeDeps,
  progress: Progress,
  signal: AbortSignal,
): Promise<ProbeResponse> {
  await connect(channel, clock, progress, signal);
  const metadata = { 'user-agent': userAgent };
  try {
    const { status } = await channel.client(Health).check({ service }, { signal, timeoutMs, metadata });
    if (status === 'SERVING') return { is: 'success', output: 'service healthy' };
    return failure(`service unhealthy (responded with "${status}")`);
  } catch (error) {
    signal.throwIfAborted();
    return failure(refusal(error, timeoutMs));
  }
}

async function connect(
  channel: GrpcChannel,
  clock: Clock,
  progress: Progress,
  signal: AbortSignal,
): Promise<void> {
  while (progress.is === 'connecting') {
    try {
      await channel.connect(signal);
      progress.is = 'connected';
    } catch (error) {
      signal.throwIfAborted();
      progress.why = error;
      await clock.sleep(retryMs, signal);
    }
  }
}

function refusal(error: unknown, timeoutMs: number): string {
  const code = error instanceof GrpcError ? error.grpcCode : undefined;
  if (code === 'UNIMPLEMENTED')
    return `error: this server does not implement the grpc health protocol (grpc.health.v1.Health): ${describeError(error)}`;
  if (code === 'DEADLINE_EXCEEDED')
    return `timeout: health rpc did not complete within ${formatDurationMs(timeoutMs)}`;
  return `error: health rpc probe failed: ${describeError(error)}`;
}
