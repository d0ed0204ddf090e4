import type { Clock, Random } from '../lib/index.ts';
import { GrpcChannel, type ServiceClient } from '../protocols/grpc/index.ts';
import { parseEndpoint } from './endpoint.ts';
import { Content, type ContentMethods, Events, type EventsMethods } from './gen/containerd.ts';
import {
  ImageService,
  type ImageServiceMethods,
  RuntimeService,
  type RuntimeServiceMethods,
} from './gen/runtime.ts';

/**
 * The services of one runtime, raw: no deadlines, no checks, GrpcErrors. Behind it is the wire, or a simulated runtime
 * in this process; the CRI client on top is the same for both.
 */
export interface CriTransport {
  readonly runtime: ServiceClient<RuntimeServiceMethods>;
  readonly image: ServiceClient<ImageServiceMethods>;
  /** containerd's own events; other runtimes answer UNIMPLEMENTED. */
  readonly containerdEvents: ServiceClient<EventsMethods>;
  /** What containerd is writing; other runtimes answer UNIMPLEMENTED. */
  readonly containerdContent: ServiceClient<ContentMethods>;
  /** Ends all calls; the transport cannot be used again. */
  close(): void;
}

export interface WireOptions {
  readonly endpoint: string;
  /** Images may live behind a socket of their own; the runtime's unless given. */
  readonly imageEndpoint?: string;
  readonly clock: Clock;
  readonly random: Random;
}

const maxReceiveBytes = 16 << 20;

/** The wire to a real runtime. Connects on the first call, and again whenever that is needed. */
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
