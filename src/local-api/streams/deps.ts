import type { Clock, Logger } from '../../lib/index.ts';
import type { ObjectReader } from '../api/index.ts';
import type { StreamCall, StreamProxy } from '../http/server-deps.ts';
import type { KubeletDialer } from './kubelet-dialer.ts';

export type { StreamCall };
/** Handles streaming and proxy subresources. */
export type Streams = StreamProxy;

export interface StreamsDeps {
  readonly kubelet: KubeletDialer;
  readonly objects: ObjectReader;
  readonly clock: Clock;
  readonly logger: Logger;
}
