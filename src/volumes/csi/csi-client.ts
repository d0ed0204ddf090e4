import { type Clock, isKind, KubelingError, withDeadline } from '../../lib/index.ts';
import type { PluginChannel } from '../../plugins/index.ts';
import { codeText, describeStatus, type GrpcCode, GrpcError } from '../../protocols/grpc/index.ts';
import {
  Node,
  type NodeCapability,
  type NodeExpandVolumeRequest,
  type NodeGetInfoResponse,
  type NodeGetVolumeStatsRequest,
  type NodeGetVolumeStatsResponse,
  type NodePublishVolumeRequest,
  type NodeStageVolumeRequest,
} from './gen/node.ts';

/**
 * Client of a driver's CSI Node service. Its methods reject with CSI_REFUSED, or with CSI_UNCERTAIN
 * when the outcome is unknown.
 */
export interface CsiClient {
  capabilities(signal: AbortSignal): Promise<ReadonlySet<NodeCapability>>;
  info(signal: AbortSignal): Promise<NodeGetInfoResponse>;
  stage(request: NodeStageVolumeRequest, signal: AbortSignal): Promise<void>;
  unstage(volumeId: string, stagingTargetPath: string, signal: AbortSignal): Promise<void>;
  publish(request: NodePublishVolumeRequest, signal: AbortSignal): Promise<void>;
  unpublish(volumeId: string, targetPath: string, signal: AbortSignal): Promise<void>;
  expand(request: NodeExpandVolumeRequest, signal: AbortSignal): Promise<void>;
  stats(request: NodeGetVolumeStatsRequest, signal: AbortSignal): Promise<NodeGetVolumeStatsResponse>;
  close(): void;
}

/** Deadline of one CSI call. */
export const csiDeadlineMs = 120_000;

/** gRPC codes after which the operation may still be running or may have succeeded. */
const uncertain: ReadonlySet<GrpcCode> = new Set([
  'CANCELLED',
  'DEADLINE_EXCEEDED',
  'UNAVAILABLE',
  'RESOURCE_EXHAUSTED',
  'ABORTED',
]);

type CallObserver = (method: string, code: string, ms: number) => void;

/** Creates a client; the observer gets the CSI method names and the gRPC codes in Go's spelling. */
export function csiClient(channel: PluginChannel, clock: Clock, observe: CallObserver): CsiClient {
  const node = channel.client(Node);
  type Methods = typeof node;
  const call = async <Name extends keyof Methods>(
    name: Name,
    request: Parameters<Methods[Name]>[0],
    signal: AbortSignal,
  ): Promise<Awaited<ReturnType<Methods[Name]>>> => {
    const method = node[name] as (...args: readonly unknown[]) => Promise<Awaited<ReturnType<Methods[Name]>>>;
    return await observedCall(
      { method: wireName(name), clock, observe },
      (inner) => method(request, { signal: inner, timeoutMs: csiDeadlineMs }),
      signal,
    );
  };
  return {
    capabilities: async (signal) => {
      const { capabilities } = await call('nodeGetCapabilities', {}, signal);
      return new Set(capabilities.flatMap(({ rpc }) => (rpc === undefined ? [] : [rpc.type])));
    },
    info: (signal) => call('nodeGetInfo', {}, signal),
    stage: async (request, signal) => void (await call('nodeStageVolume', request, signal)),
    unstage: async (volumeId, stagingTargetPath, signal) =>
      void (await call('nodeUnstageVolume', { volumeId, stagingTargetPath }, signal)),
    publish: async (request, signal) => void (await call('nodePublishVolume', request, signal)),
    unpublish: async (volumeId, targetPath, signal) =>
      void (await call('nodeUnpublishVolume', { volumeId, targetPath }, signal)),
    expand: async (request, signal) => void (await call('nodeExpandVolume', request, signal)),
    stats: (request, signal) => call('nodeGetVolumeStats', request, signal),
    close: () => channel.close(),
  };
}

interface ObservedCall {
  readonly method: string;
  readonly clock: Clock;
  readonly observe: CallObserver;
}

/** Waits for the response until the deadline, and reports the gRPC code and the duration. */
async function observedCall<Response>(
  { method, clock, observe }: ObservedCall,
  work: (signal: AbortSignal) => Promise<Response>,
  signal: AbortSignal,
): Promise<Response> {
  const deadline = { clock, ms: csiDeadlineMs, what: `have an answer from the driver to ${method}` };
  const begin = clock.monotonicMs();
  const report = (code: GrpcCode) =>
    observe(`/csi.v1.Node/${method}`, codeText(code), clock.monotonicMs() - begin);
  try {
    const response = await withDeadline(deadline, work, signal);
    report('OK');
    return response;
  } catch (error) {
    report(codeOf(error, signal));
    signal.throwIfAborted();
    throw translated(error);
  }
}

/** Converts a driver's error to one with the message that the Go kubelet shows in events. */
function translated(error: unknown): KubelingError {
  if (!(error instanceof GrpcError)) {
    const message = error instanceof Error ? error.message : String(error);
    const text = isKind(error, 'DeadlineExceeded') ? describeStatus('DEADLINE_EXCEEDED', message) : message;
    return new KubelingError('CSI_UNCERTAIN', text, { cause: error });
  }
  const { grpcCode, message } = error;
  const code = uncertain.has(grpcCode) ? 'CSI_UNCERTAIN' : 'CSI_REFUSED';
  return new KubelingError(code, describeStatus(grpcCode, message), { details: { grpcCode } });
}

function wireName(method: string): string {
  return `${method.slice(0, 1).toUpperCase()}${method.slice(1)}`;
}

function codeOf(error: unknown, signal: AbortSignal): GrpcCode {
  if (signal.aborted) return 'CANCELLED';
  if (error instanceof GrpcError) return error.grpcCode;
  return isKind(error, 'DeadlineExceeded') ? 'DEADLINE_EXCEEDED' : 'UNKNOWN';
}

/** Whether the driver definitely rejected the operation. */
export function isRejected(error: unknown): boolean {
  return error instanceof KubelingError && error.code === 'CSI_REFUSED';
}

/** Whether the error or one of its causes is CSI_ABSENT: the driver is not registered. */
export function isDriverMissing(error: unknown): boolean {
  return codesOf(error).includes('CSI_ABSENT');
}

/** Whether the error shows that the driver or the API server was unreachable. */
export function isUnavailable(error: unknown): boolean {
  return codesOf(error).includes('CSI_ABSENT') || isKind(rootOf(error), 'Unavailable', 'DeadlineExceeded');
}

function codesOf(error: unknown): readonly string[] {
  if (!(error instanceof KubelingError)) return [];
  return [error.code, ...codesOf(error.cause)];
}

function rootOf(error: unknown): unknown {
  return error instanceof KubelingError && error.cause !== undefined ? rootOf(error.cause) : error;
}

/** The gRPC code of a driver's error; undefined for other errors. */
export function grpcCodeOf(error: unknown): string | undefined {
  const code = error instanceof KubelingError ? error.details['grpcCode'] : undefined;
  return typeof code === 'string' ? code : undefined;
}
