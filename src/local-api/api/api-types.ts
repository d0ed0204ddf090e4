import type { ApiResource, DeleteOptions, JsonObject, PatchKind } from '../../api/index.ts';
import type { Clock, Random } from '../../lib/index.ts';
import type { FieldReason } from '../../pods/index.ts';
import type { StoredObject } from './stored-object.ts';

/** The request verbs of a resource, as in RBAC. */
export type ResourceVerb =
  | 'get'
  | 'list'
  | 'watch'
  | 'create'
  | 'update'
  | 'patch'
  | 'delete'
  | 'deletecollection';

/** A subresource, such as `status` or `binding`. */
export interface SubresourceEntry {
  readonly name: string;
  /**
   * The request and response kind of the subresource, where it differs from the kind of the
   * resource.
   */
  readonly group?: string;
  readonly version?: string;
  readonly kind?: string;
  readonly verbs: readonly ResourceVerb[];
}

/**
 * The definition of one resource. Adding a resource to the API means adding such an entry to the
 * catalogue.
 */
export interface ResourceEntry {
  readonly resource: ApiResource;
  readonly singular: string;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly verbs: readonly ResourceVerb[];
  readonly subresources: readonly SubresourceEntry[];
  /** The fields that field selectors support, besides metadata.name and metadata.namespace. */
  readonly fieldSelectors: readonly string[];
  /** Whether a successful DELETE returns the object or a Status. */
  readonly deleteReturns: 'object' | 'status';
  /** Whether objects are stored, or only computed per request, as for reviews. */
  readonly storage: 'stored' | 'virtual';
  readonly strategy: ResourceStrategy;
  /** Set for a resource that has no own objects and presents those of another resource. */
  readonly view?: ResourceView;
}

/**
 * Presents the stored objects of one resource as another resource. Selectors and the strategy use
 * the stored form.
 */
export interface ResourceView {
  readonly of: ApiResource;
  readonly toView: (toStored: StoredObject) => StoredObject;
  /**
   * Converts an object in the form of the view to its stored form. Its metadata may lack the fields
   * that the server sets.
   */
  readonly stored: (shown: JsonObject) => JsonObject;
  /**
   * Returns the validation errors, besides those of the strategy, for an object (in stored form)
   * that was written through this view.
   */
  readonly validate: (object: StoredObject, before: StoredObject | undefined) => readonly FieldCause[];
}

/** A cause in the details of an Invalid status. */
export interface FieldCause {
  readonly reason: FieldReason;
  readonly field: string;
  /**
   * The message without the field path, such as `Required value` or `Invalid value: "x": must be no
   * more than 63 characters`.
   */
  readonly message: string;
}

/** Reads the current objects from the store; they are frozen. */
export interface ObjectReader {
  get(resource: ApiResource, namespace: string | undefined, name: string): StoredObject | undefined;
  /** All objects of the resource, sorted by namespace and name. */
  all(resource: ApiResource, namespace?: string): readonly StoredObject[];
}

/** The context of one write request. */
export interface WriteContext {
  readonly verb: 'create' | 'update' | 'delete';
  /** The object before the write; undefined for a create. */
  readonly before: StoredObject | undefined;
  readonly user: ApiUser;
  readonly subresource: string | undefined;
  /**
   * The resource of the request path. For a stored kind with two resources, such as events, it
   * shows through which of the two the object is written.
   */
  readonly resource: ApiResource;
  readonly objects: ObjectReader;
  readonly clock: Clock;
  readonly random: Random;
  /** The options of a delete request; undefined for other writes and for dry-run deletes. */
  readonly deletion?: DeleteOptions;
  /** Adds a warning header to the response, also when the write is rejected. */
  readonly warn: (text: string) => void;
}

/**
 * The strategy of one kind: its steps of a write, in the order in which they run. Steps are
 * synchronous and do not write to the store.
 */
export interface ResourceStrategy {
  /** Whether the status can be written only through its subresource. */
  readonly status?: 'separate' | 'inline';
  readonly generation?: 'counted' | 'none';
  readonly unconditionalUpdate?: 'allowed' | 'refused';
  readonly createOnUpdate?: 'allowed' | 'refused';
  /** Applies defaults and server-set fields. Runs after metadata and generation are set. */
  readonly prepare?: (object: StoredObject, write: WriteContext) => StoredObject;
  /**
   * Mutating admission: may read other objects and return a changed object; throws a StatusError to
   * reject the write. For a delete it gets the object to be deleted, and its result is ignored.
   */
  readonly admit?: (object: StoredObject, write: WriteContext) => StoredObject;
  /** Returns all validation errors, not only the first. */
  readonly validate?: (object: StoredObject, write: WriteContext) => readonly FieldCause[];
  /**
   * For each subresource, builds the new object from the stored and the requested one, with only
   * the changes that the subresource allows. `status`, `approval`, `finalize`,
   * `ephemeralcontainers` and `resize` have defaults. Runs after the metadata update and before
   * `prepare`, `admit` and `validate`, which get `write.subresource`.
   */
  readonly subresourceUpdates?: Readonly<
    Record<string, (before: StoredObject, desired: JsonObject) => StoredObject>
  >;
  /**
   * Changes an object at the start of its deletion, for example its phase. The object is not
   * removed yet, and its deletion timestamp is set.
   */
  readonly beginDeletion?: (object: StoredObject, write: WriteContext) => StoredObject;
  /**
   * Whether something besides metadata.finalizers blocks the removal of an object that is being
   * deleted.
   */
  readonly blocksDeletion?: (object: StoredObject) => boolean;
  /**
   * Custom actions by subresource name, such as `binding`; the empty name is the action of a
   * virtual resource, such as a review.
   */
  readonly handlers?: Readonly<Record<string, RequestAction>>;
}

/** A parsed and authorized request. */
export interface ApiCall {
  readonly user: ApiUser;
  readonly verb: ResourceVerb;
  readonly entry: ResourceEntry;
  readonly namespace: string | undefined;
  readonly name: string | undefined;
  readonly subresource: string | undefined;
  /**
   * The query parameters as text: numbers and resource versions are checked where they are used.
   */
  readonly query: URLSearchParams;
  /** The decoded request body: an object, DeleteOptions or a patch. */
  readonly body: JsonObject | readonly unknown[] | undefined;
  readonly patch: PatchKind | undefined;
  /**
   * Decodes a patched object like a full request body; throws a StatusError if it is invalid.
   * Undefined for internal callers, whose patches are always valid.
   */
  readonly decodePatched?: ((patched: JsonObject) => JsonObject) | undefined;
  readonly dryRun: boolean;
  readonly warn: (text: string) => void;
}

/**
 * The server as actions and controllers use it: they read objects and send internal requests, which
 * pass admission and validation like client requests.
 */
export interface ServerContext {
  readonly objects: ObjectReader;
  readonly clock: Clock;
  readonly random: Random;
  /** Executes a request on behalf of a user or of the server itself. Throws a StatusError. */
  readonly execute: (call: ApiCall) => StoredObject;
  /**
   * Writes the part of the object that a subresource update allows. Actions such as `binding` use
   * it, also for subresource updates that have no request path. The name must be a key of
   * `subresourceUpdates`.
   */
  readonly updateSubresource: (call: ApiCall, part: string) => StoredObject;
  /**
   * Whether the commit queue accepts more writes. Bulk writers check it before each batch and wait
   * while it is false.
   */
  readonly acceptsWrites: () => boolean;
  readonly whenAcceptingWrites: (signal: AbortSignal) => Promise<void>;
  /** Calls the listener synchronously for each change, in order. The listener must not throw. */
  readonly onChange: (listener: (change: StoredChange) => void) => Disposable;
}

export interface StoredChange {
  readonly version: number;
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly resource: ApiResource;
  readonly object: StoredObject;
  readonly before: StoredObject | undefined;
}

export type RequestAction = (call: ApiCall, context: ServerContext) => JsonObject | Promise<JsonObject>;

/** A control loop of the server. Runs until it is aborted. */
export interface Controller {
  readonly name: string;
  run(signal: AbortSignal): Promise<void>;
}

export interface StatusBody {
  readonly code: number;
  readonly reason: string;
  readonly message: string;
  readonly details?: {
    readonly name?: string;
    readonly group?: string;
    /** The plural of the resource that the error is about; in an Invalid error its kind. */
    readonly kind?: string;
    readonly uid?: string;
    readonly causes?: readonly {
      readonly reason: string;
      readonly message: string;
      readonly field?: string;
    }[];
    readonly retryAfterSeconds?: number;
  };
  /** The token with which a client can continue an expired list. */
  readonly next?: { readonly continue: string };
}

/** An API error with its Status; the HTTP server sends it as the response. */
export class StatusError extends Error {
  readonly status: StatusBody;

  constructor(status: StatusBody) {
    super(status.message);
    this.name = 'StatusError';
    this.status = status;
  }
}

export type ApiVerb = ResourceVerb;

export interface ApiUser {
  readonly name: string;
  readonly groups: readonly string[];
  readonly uid?: string;
  /** Further attributes of the user, such as the pod to which its token is bound. */
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

const nodePrefix = 'system:node:';

/**
 * The node name of a node user. An empty name does not identify a node: it would match every pod
 * without a node.
 */
export function nodeNameOfUser({ name, groups }: ApiUser): string | undefined {
  const isNode = groups.includes('system:nodes') && name.startsWith(nodePrefix);
  return isNode && name !== nodePrefix ? name.slice(nodePrefix.length) : undefined;
}

/** An API request after authentication and parsing. */
export interface ApiRequest {
  readonly user: ApiUser;
  readonly verb: ApiVerb;
  readonly resource: ApiResource;
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
  readonly subresource?: string | undefined;
  readonly fieldSelector?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly body?: unknown;
  /** A dry run does everything except storing the result; 'commit' by default. */
  readonly writeMode?: 'commit' | 'dry-run';
  /** Adds a warning header to the response, also when the request is rejected. */
  readonly warn?: ((text: string) => void) | undefined;
}

/** The resource and subresource as RBAC rules name them, such as `pods/status`. */
export function resourceWithSubresource(of: {
  readonly resource: Pick<ApiResource, 'plural'>;
  readonly subresource?: string | undefined;
}): string {
  const { resource, subresource } = of;
  return subresource === undefined ? resource.plural : `${resource.plural}/${subresource}`;
}

export function describeRequest({ verb, resource, name, subresource }: ApiRequest): string {
  return [`${verb} ${resource.plural}`, name, subresource].filter((part) => part !== undefined).join('/');
}
