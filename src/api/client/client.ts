import type { Collection, ObjectRef } from './resource.ts';

/** The metadata fields of API objects that the client itself uses. */
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
  /**
   * The requested resource version: '0' accepts any version that the server has cached; undefined
   * requests the newest.
   */
  readonly resourceVersion?: string | undefined;
  readonly limit?: number | undefined;
  readonly continue?: string | undefined;
}

export interface WatchQuery extends Collection {
  readonly fieldSelector?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly resourceVersion?: string | undefined;
  readonly timeoutSeconds: number;
  /** 'initial' requests the existing objects first, followed by a bookmark. */
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
  /** The deletion fails unless the object has this UID. */
  readonly uid?: string | undefined;
  readonly resourceVersion?: string | undefined;
}

export interface GetOptions {
  readonly resourceVersion?: string | undefined;
}

/**
 * The API client of a kubelet. Results are decoded objects; error responses are KubelingErrors as
 * created by `api-error.ts`. A watch ends when the server ends it, and fails with API_GONE if its
 * resource version is expired. Every call except a watch has its own deadline.
 */
export interface ApiClient {
  get<T extends ApiObject>(ref: ObjectRef, options: GetOptions, signal: AbortSignal): Promise<T>;
  list<T extends ApiObject>(query: ListQuery, signal: AbortSignal): Promise<ApiList<T>>;
  watch<T extends ApiObject>(query: WatchQuery, signal: AbortSignal): AsyncIterable<WatchEvent<T>>;
  create<T extends ApiObject>(at: Collection, object: ApiObject, signal: AbortSignal): Promise<T>;
  /** Creates a subresource of the object, for example the `token` of a service account. */
  post<T extends ApiObject>(ref: ObjectRef, object: ApiObject, signal: AbortSignal): Promise<T>;
  update<T extends ApiObject>(ref: ObjectRef, object: ApiObject, signal: AbortSignal): Promise<T>;
  patch<T extends ApiObject>(ref: ObjectRef, patch: Patch, signal: AbortSignal): Promise<T>;
  delete(ref: ObjectRef, options: DeleteOptions, signal: AbortSignal): Promise<void>;
  /**
   * Calls the listener when the server responds to any client after it was unreachable, so that
   * waiting calls retry immediately. Undefined for clients that do not track reachability.
   */
  onReturn?(listener: () => void): Disposable;
}
