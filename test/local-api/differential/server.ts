import type { RequestUser } from './step.ts';

export interface Identity {
  readonly cert?: string;
  readonly key?: string;
  readonly token?: string;
}

/** A server of the API: a real one or the embedded one. */
export interface Server extends AsyncDisposable {
  readonly url: string;
  readonly ca: string | Buffer;
  identity(who: Exclude<RequestUser, object>): Identity;
  /** Drops the history of changes. */
  dropHistory(): Promise<void>;
}
