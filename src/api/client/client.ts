import type { Collection, ObjectRef } from './resource.ts';

/** What every object of the API has, as far as the client itself cares. */
export interface ApiObject {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata?:
    | {
        readonly name?: string | undefined;
        readonly namespace?: string | undefined;
        readonly uid?: string | undefined;
        readonly resourceVersion?: string | undefined;
        readonly annotations?: Readonly<Record<string, string>> | undefined;
      }
    | undefined;
}

export interface ApiList<T> {
  readonly metadata: { readonly resourceVersion: string; readonly continue?: string | undefined };
  readonly items: readonly T[];
}

export interface ListQuery extends Collection {
  readonly fieldSelector?: string | undefined;
  readonly labelSelector?: string | undefined;
  /** '0' for whatever the server has at hand, left out for the newest. */
  readonly resourceVersion?: string | undefined;
  readonly limit?: number | undefined;
  readonly continue?: string | undefined;
}

export interface WatchQuery extends Collection {
  readonly fieldSelector?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly resourceVersion?: string | undefined;
  readonly timeoutSeconds: number;
  /** 'initial' asks for the objects there are first, then a bookmark that ends them. */
  readonly begin: 'initial' | 'at-version';
}

export type WatchEvent<T> =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly object: T }
  | { readonly type: 'BOOKMARK'; readonly object: ApiObject };

export type PatchKind = 'json' | 'merge' | 'strategic';

export interface Patch {
  readonly kind: PatchKind;
  readonly body: unknown;
}

export interface DeleteOptions {
  readonly gracePeriodSeconds?: number | undefined;
  /** The object must be this one. */
  readonly uid?: string | undefined;
  readonly resourceVersion?: string | undefined;
}

export interface GetOptions {
  readonly resourceVersion?: string | undefined;
}

/**
 * What a kubelet asks of an API server. Answers are the decoded objects; a refusal is a KubelingError as `api-error.ts`
 * makes it. A watch ends when the server ends it, and fails with API_GONE when what it was to begin at is forgotten.
 * Every call but a watch has a deadline of its own.
 */
export interface ApiClient {
  get<T extends ApiObject>(ref: ObjectRef, options: GetOptions, signal: AbortSignal): Promise<T>;
  list<T extends ApiObject>(query: ListQuery, signal: AbortSignal): Promise<ApiList<T>>;
  watch<T extends ApiObject>(query: WatchQuery, signal: AbortSignal): AsyncIterable<WatchEvent<T>>;
  create<T extends ApiObject>(at: Collection, object: ApiObject, signal: AbortSignal): Promise<T>;
  /** A subresource that is posted to, such as a service account's `token`. */
  post<T extends ApiObject>(ref: ObjectRef, object: ApiObject, signal: AbortSignal): Promise<T>;
  update<T extends ApiObject>(ref: ObjectRef, object: ApiObject, signal: AbortSignal): Promise<T>;
  patch<T extends ApiObject>(ref: ObjectRef, patch: Patch, signal: AbortSignal): Promise<T>;
  delete(ref: ObjectRef, options: DeleteOptions, signal: AbortSignal): Promise<void>;
  /**
   * Tells when the server answers anybody after it could not be reached for a while, so that whoever waits may try again
   * at once. Left out by a client that cannot know.
   */
  onReturn?(told: () => void): Disposable;
}
