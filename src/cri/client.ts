import { abortable, type Clock, KubelingError, withAbortGrace, withDeadline } from '../lib/index.ts';
import type { CallOptions, ServerStream, Unary } from '../protocols/grpc/index.ts';
import type { MessageInit } from '../protocols/protobuf/index.ts';
import { type Ingest, readContentOf, readIngests } from './containerd-content.ts';
import { type ContainerdEvent, publishContainerdEvent, readContainerdEvents } from './containerd-events.ts';
import { translateError } from './errors.ts';
import { ImageService, RuntimeService, type VersionResponse } from './gen/runtime.ts';
import { type CriMethods, type CriOperation, deadlineMs, operationNames } from './operations.ts';
import { checkResponse } from './responses.ts';
import type { CriTransport } from './transport.ts';

/**
 * Observes each call of the runtime once, when it ends. A stream ends when it was read completely,
 * when its reader left the loop over it, or when it failed.
 */
export interface CriObserver {
  /**
   * `operation` is the metric name of the call; `error` is undefined for a successful call. Must
   * not throw.
   */
  called(operation: string, durationMs: number, error: KubelingError | undefined): void;
}

export interface CriClientOptions {
  readonly transport: CriTransport;
  readonly clock: Clock;
  /**
   * The runtimeRequestTimeout of the kubelet configuration: the deadline of most calls; some calls
   * get more time.
   */
  readonly requestTimeoutMs?: number;
  readonly observer?: CriObserver;
}

type CriCalls = {
  readonly [Name in CriOperation]: CriMethods[Name] extends Unary<infer Request, infer Response>
    ? (request: MessageInit<Request>, signal: AbortSignal) => Promise<Response>
    : CriMethods[Name] extends ServerStream<infer Request, infer Response>
      ? (request: MessageInit<Request>, signal: AbortSignal) => AsyncIterable<Response>
      : never;
};

/**
 * Client of the container runtime. Each call has a deadline, a checked response and an observer,
 * and fails with a KubelingError whose kind determines the reaction. A call that exceeded its
 * deadline has an unknown outcome: inspect the state before repeating it. Streams have no deadline;
 * leaving their loop closes them.
 */
export interface CriClient extends CriCalls {
  /** Streams containerd's own events, for runtimes without CRI events. */
  containerdEvents(signal: AbortSignal): AsyncIterable<ContainerdEvent>;
  /**
   * Publishes a containerd event with the ID of a container that does not exist. Receiving it from
   * `containerdEvents` proves that events arrive.
   */
  publishContainerdEvent(containerId: string, signal: AbortSignal): Promise<void>;
  /**
   * Lists the active ingests of containerd's content store: the layers of running pulls. Rejects
   * with CRI_UNSUPPORTED on other runtimes.
   */
  containerdIngests(signal: AbortSignal): Promise<readonly Ingest[]>;
  /**
   * Digests of the content that containerd has, or will fetch in a running pull, for a repository
   * such as `r.io/team/app`.
   */
  containerdContentOf(repository: string, signal: AbortSignal): Promise<ReadonlySet<string>>;
  /** Returns the runtime's version; rejects a runtime with another CRI version. */
  checkVersion(signal: AbortSignal): Promise<VersionResponse>;
  close(): void;
}

/** The supported version of the CRI itself, not of the runtime. */
const interfaceVersion = '0.1.0';
const defaultRequestTimeoutMs = 120_000;
/**
 * Minimum age of an ExecSync call before its cancellation is sent. If ExecSync is cancelled while a
 * containerd shim starts the command, the shim answers no call for half a minute, not even those
 * that stop the pod.
 */
const minExecMs = 10_000;

type RawUnary = (request: object, options: CallOptions) => Promise<unknown>;
type RawStream = (request: object, options: CallOptions) => AsyncIterable<unknown>;

export function createCriClient(options: CriClientOptions): CriClient {
  const { transport } = options;
  const calls: Record<string, unknown> = {};
  for (const [service, type] of [
    [transport.runtime, RuntimeService],
    [transport.image, ImageService],
  ] as const) {
    for (const [name, method] of Object.entries(type.methods)) {
      const raw = (service as unknown as Record<string, unknown>)[name];
      const operation = name as CriOperation;
      const unary =
        operation === 'execSync' ? withDelayedCancel(options.clock, raw as RawUnary) : (raw as RawUnary);
      calls[name] =
        method.kind === 'unary'
          ? (request: object, signal: AbortSignal) => callOnce(options, operation, unary, request, signal)
          : (request: object, signal: AbortSignal) =>
              callStream(options, operation, raw as RawStream, request, signal);
    }
  }
  const client = calls as unknown as CriCalls;
  return {
    ...client,
    containerdEvents: (signal) => readContainerdEvents(transport.containerdEvents, signal),
    publishContainerdEvent: (containerId, signal) =>
      publishContainerdEvent(transport.containerdEvents, containerId, signal),
    containerdIngests: (signal) => readIngests(transport.containerdContent, options.clock, signal),
    containerdContentOf: (repository, signal) =>
      readContentOf(transport.containerdContent, options.clock, repository, signal),
    checkVersion: (signal) => checkVersion(client, signal),
    close: () => transport.close(),
  };
}

async function callOnce(
  options: CriClientOptions,
  operation: CriOperation,
  raw: RawUnary,
  request: object,
  signal: AbortSignal,
): Promise<unknown> {
  const { clock, observer } = options;
  const startMs = clock.monotonicMs();
  let failure: KubelingError | undefined;
  try {
    const limitMs = deadlineMs(operation, request, options.requestTimeoutMs ?? defaultRequestTimeoutMs);
    const response = await callWithin(clock, operation, limitMs, raw, request, signal);
    checkResponse(operation, response);
    return response;
  } catch (error) {
    failure = translateError(operation, error, signal);
    throw failure;
  } finally {
    observer?.called(operationNames[operation], clock.monotonicMs() - startMs, failure);
  }
}

function callWithin(
  clock: Clock,
  operation: CriOperation,
  limitMs: number | undefined,
  raw: RawUnary,
  request: object,
  signal: AbortSignal,
): Promise<unknown> {
  if (limitMs === undefined) return raw(request, { signal });
  return withDeadline(
    { clock, ms: limitMs, what: `finish the runtime call ${operationNames[operation]}` },
    (inner) => raw(request, { signal: inner, timeoutMs: limitMs }),
    signal,
  );
}

/**
 * Cancelling returns to the caller immediately; the runtime gets the cancellation when the call has
 * its minimum age.
 */
function withDelayedCancel(clock: Clock, raw: RawUnary): RawUnary {
  return (request, { signal, ...options }) => {
    const startMs = clock.monotonicMs();
    const ms = () => startMs + minExecMs - clock.monotonicMs();
    const call = withAbortGrace(
      { clock, ms },
      (inner) => raw(request, { ...options, signal: inner }),
      signal,
    );
    return abortable(call, signal);
  };
}

async function* callStream(
  { clock, observer }: CriClientOptions,
  operation: CriOperation,
  raw: RawStream,
  request: object,
  signal: AbortSignal,
): AsyncGenerator<unknown> {
  const startMs = clock.monotonicMs();
  let failure: KubelingError | undefined;
  try {
    yield* raw(request, { signal });
  } catch (error) {
    failure = translateError(operation, error, signal);
    throw failure;
  } finally {
    observer?.called(operationNames[operation], clock.monotonicMs() - startMs, failure);
  }
}

async function checkVersion(
  client: Pick<CriCalls, 'version'>,
  signal: AbortSignal,
): Promise<VersionResponse> {
  const response = await client.version({}, signal);
  if (response.version === interfaceVersion) return response;
  throw new KubelingError(
    'CRI_VERSION',
    `Cannot use ${response.runtimeName} ${response.runtimeVersion} as its CRI version must be ${interfaceVersion}: it is ${response.version}`,
  );
}
