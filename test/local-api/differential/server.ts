import type { RequestUser } from './step.ts';

export interface Identity {
  readonly cert?: string;
  readonly key?: string;
  readonly token?: string;
}

/** An API server under comparison: a recorded real kube-apiserver or the embedded API. */
export interface Server extends AsyncDisposable {
  readonly url: string;
  readonly ca: string | Buffer;
  identity(who: Exclude<RequestUser, object>): Identity;
  /** Drops the watch history of the server. */
  dropHistory(): Promise<void>;
}
