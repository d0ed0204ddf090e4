import type { Who } from './step.ts';

export interface Identity {
  readonly cert?: string;
  readonly key?: string;
  readonly token?: string;
}

/** Somebody who speaks the API: a real server, or the embedded one. */
export interface Server extends AsyncDisposable {
  readonly url: string;
  readonly ca: string | Buffer;
  identity(who: Exclude<Who, object>): Identity;
  /** Forgets what happened so far. */
  forget(): Promise<void>;
}
