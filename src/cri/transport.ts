import type { Clock, Random } from '../lib/index.ts';
import { KubelingError } from '../lib/index.ts';
import { GrpcChannel, type ServiceClient } from '../protocols/grpc/index.ts';
import { Content, type ContentMethods, Events, type EventsMethods } from './gen/containerd.ts';
import {
  ImageService,
  type ImageServiceMethods,
  RuntimeService,
  type RuntimeServiceMethods,
} from './gen/runtime.ts';

/**
 * The services of one container runtime, called without deadlines and checks; failures are
 * GrpcErrors. Implemented over gRPC and by the simulated runtime.
 */
export interface CriTransport {
  readonly runtime: ServiceClient<RuntimeServiceMethods>;
  readonly image: ServiceClient<ImageServiceMethods>;
  /** containerd's own events; other runtimes return UNIMPLEMENTED. */
  readonly containerdEvents: ServiceClient<EventsMethods>;
  /** containerd's content store; other runtimes return UNIMPLEMENTED. */
  readonly containerdContent: ServiceClient<ContentMethods>;
  /** Ends all calls; the transport cannot be used afterwards. */
  close(): void;
}

export interface WireOptions {
  readonly endpoint: string;
  /** The endpoint of a separate image service; by default the runtime serves images too. */
  readonly imageEndpoint?: string;
  readonly clock: Clock;
  readonly random: Random;
}

const maxReceiveBytes = 16 << 20;

/**
 * Creates a CRI transport over gRPC, which connects on the first call and reconnects when needed.
 */
export function wireTransport(options: WireOptions): CriTransport {
  const { clock, random } = options;
  const target = parseEndpoint(options.endpoint);
  const imageTarget = parseEndpoint(options.imageEndpoint ?? options.endpoint);
  const open = (at: string) =>
    new GrpcChannel({
      target: at,
      clock,
      random,
      maxReceiveBytes,
      baseBackoffMs: 100,
      maxBackoffMs: 3_000,
    });
  const channel = open(target);
  const imageChannel = imageTarget === target ? channel : open(imageTarget);
  return {
    runtime: channel.client(RuntimeService),
    image: imageChannel.client(ImageService),
    containerdEvents: channel.client(Events),
    containerdContent: imageChannel.client(Content),
    close() {
      channel.close();
      imageChannel.close();
    },
  };
}

/** Maximum path length of a unix socket address, without the terminating zero byte. */
const longestSocketPath = 107;

/**
 * Converts a runtime endpoint to a gRPC target. Accepts `unix:///run/containerd/containerd.sock` or
 * the path alone.
 */
export function parseEndpoint(endpoint: string): string {
  const path = socketPath(endpoint);
  if (path === undefined || !path.startsWith('/')) {
    throw new KubelingError(
      'CRI_ENDPOINT',
      `Cannot use the runtime endpoint as it must be unix:// with an absolute path: current value is ${JSON.stringify(endpoint)}`,
    );
  }
  if (Buffer.byteLength(path) > longestSocketPath) {
    throw new KubelingError(
      'CRI_ENDPOINT',
      `Cannot use the runtime endpoint as a socket's path must be at most ${longestSocketPath} bytes: ${path} has ${Buffer.byteLength(path)}`,
    );
  }
  return `unix://${path}`;
}

function socketPath(endpoint: string): string | undefined {
  if (endpoint.startsWith('unix://')) return endpoint.slice('unix://'.length);
  return endpoint.includes('://') ? undefined : endpoint;
}
