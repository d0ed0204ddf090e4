import type { ApiResource, DeleteOptions, JsonObject, PatchKind } from '../../api/index.ts';
import type { Clock, Random } from '../../lib/index.ts';
import type { FieldReason } from '../../pods/index.ts';
import type { StoredObject } from './stored-object.ts';

/** What a resource can be asked for. */
export type ResourceVerb =
  | 'get'
  | 'list'
  | 'watch'
  | 'create'
  | 'update'
  | 'patch'
  | 'delete'
  | 'deletecollection';

/** A part of an object with a path of its own, such as `status` or `binding`. */
export interface SubresourceEntry {
  readonly name: string;
  /** What is sent and answered there, where it is not the kind of the object itself. */
  readonly group?: string;
  readonly version?: string;
  readonly kind?: string;
  readonly verbs: readonly ResourceVerb[];
}

/** All there is to know of one resource: adding one is adding such an entry to the catalogue. */
export interface ResourceEntry {
  readonly resource: ApiResource;
  readonly singular: string;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly verbs: readonly ResourceVerb[];
  readonly subresources: readonly SubresourceEntry[];
  /** Paths of fields one may select by, besides name and namespace. */
  readonly fieldSelectors: readonly string[];
  /** Whether DELETE answers the object, or a Status that says it went well. */
  readonly deleteAnswers: 'object' | 'status';
  /** Kept in the store, or only answered, as reviews are. */
  readonly kept: 'stored' | 'answered';
  readonly rules: KindRules;
  /** For a resource that has no objects of its own, but shows those of another one. */
  readonly view?: ResourceView;
}

/** Objects kept under one resource as another one shows them. Selectors and rules are those of the kept form. */
export interface ResourceView {
  readonly of: ApiResource;
  readonly shown: (kept: StoredObject) => StoredObject;
  /** Of what a caller sent, whose metadata may lack what the server gives. */
  readonly kept: (shown: JsonObject) => JsonObject;
  /** What is wrong with an object (in its kept form) that was written here, besides what its rules say. */
  readonly validate: (object: StoredObject, before: StoredObject | undefined) => readonly FieldCause[];
}

/** What is wrong with a field, as the causes of a refusal name it. */
export interface FieldCause {
  readonly reason: FieldReason;
  readonly field: string;
  /** Without the field, such as `Required value` or `Invalid value: "x": must be no more than 63 characters`. */
  readonly message: string;
}

/** Other objects, as they are now. They are frozen. */
export interface ObjectReader {
  get(resource: ApiResource, namespace: string | undefined, name: string): StoredObject | undefined;
  /** In the order of namespaces and names. */
  all(resource: ApiResource, namespace?: string): readonly StoredObject[];
}

/** A write on its way. */
export interface WriteContext {
  readonly verb: 'create' | 'update' | 'delete';
  /** Undefined for a new object. */
  readonly before: StoredObject | undefined;
  readonly user: ApiUser;
  readonly subresource: string | undefined;
  /** By which it was asked: of two faces of one kind of object, the one that was written to. */
  readonly resource: ApiResource;
  readonly objects: ObjectReader;
  readonly clock: Clock;
  readonly random: Random;
  /** How a deletion is asked for; undefined for other writes, and for a deletion that is only rehearsed. */
  readonly deletion?: DeleteOptions;
  /** Shown to the caller, whatever becomes of the write. */
  readonly warn: (text: string) => void;
}

/** What a kind does besides what all of them do, in the order in which it is asked. Nothing here waits or writes. */
export interface KindRules {
  /** Whether the status is written by itself only. */
  readonly status?: 'apart' | 'along';
  readonly generation?: 'counted' | 'none';
  readonly updateWithoutVersion?: 'allowed' | 'refused';
  readonly createByUpdate?: 'allowed' | 'refused';
  /** Defaults, and what only the server decides. Metadata and generation are done by then. */
  readonly prepare?: (object: StoredObject, write: WriteContext) => StoredObject;
  /**
   * May look at other objects and change this one; throws a StatusError to refuse. For a deletion the object is the
   * one to be deleted, and what is returned does not count.
   */
  readonly admit?: (object: StoredObject, write: WriteContext) => StoredObject;
  /** All that is wrong with it, not only the first. */
  readonly validate?: (object: StoredObject, write: WriteContext) => readonly FieldCause[];
  /**
   * What a write to a part of the object may change, by subresource: made of the stored object and the wanted one.
   * `status`, `approval`, `finalize`, `ephemeralcontainers` and `resize` are known unless given. Metadata is done by
   * then; `prepare`, `admit` and `validate` follow with `write.subresource`.
   */
  readonly parts?: Readonly<Record<string, (before: StoredObject, wanted: JsonObject) => StoredObject>>;
  /** What its deletion makes of an object that stays for a while, such as another phase. It is marked by then. */
  readonly deleting?: (object: StoredObject, write: WriteContext) => StoredObject;
  /** Whether something besides finalizers in its metadata holds an object that is being deleted. */
  readonly holds?: (object: StoredObject) => boolean;
  /** Subresources that do something, and resources that are only answered (under ''): what they answer. */
  readonly act?: Readonly<Record<string, ActOn>>;
}

/** One request, understood: what is left is to do it. */
export interface ApiCall {
  readonly user: ApiUser;
  readonly verb: ResourceVerb;
  readonly entry: ResourceEntry;
  readonly namespace: string | undefined;
  readonly name: string | undefined;
  readonly subresource: string | undefined;
  /** As given; numbers and versions are checked by whoever uses them. */
  readonly query: URLSearchParams;
  /** A decoded object, DeleteOptions, or a patch. */
  readonly body: JsonObject | readonly unknown[] | undefined;
  readonly patch: PatchKind | undefined;
  /**
   * Reads what a patch made of an object as if it had been sent whole, and throws a StatusError if that cannot be. Left
   * out by those whose patches are known to be sound.
   */
  readonly readPatched?: ((patched: JsonObject) => JsonObject) | undefined;
  readonly dryRun: boolean;
  readonly warn: (text: string) => void;
}

/** Writes as anybody's are carried out: admission, validation and all. */
export interface World {
  readonly objects: ObjectReader;
  readonly clock: Clock;
  readonly random: Random;
  /** Carries out a call of anybody, also of the server itself. Throws a StatusError. */
  readonly carryOut: (call: ApiCall) => StoredObject;
  /**
   * For what acts on a part of an object: writes that part as the body has it, whatever acts there, and be it one that
   * has no path of its own. It must be among the parts of the rules.
   */
  readonly writePart: (call: ApiCall, part: string) => StoredObject;
  /** Whether more may be written now: who writes much asks before each piece, and waits while it may not. */
  readonly hasRoom: () => boolean;
  readonly whenRoom: (signal: AbortSignal) => Promise<void>;
  /** Called back at once for each change, in order; must not throw. */
  readonly onChange: (told: (change: ObjectChange) => void) => Disposable;
}

export interface ObjectChange {
  readonly version: number;
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly resource: ApiResource;
  readonly object: StoredObject;
  readonly before: StoredObject | undefined;
}

export type ActOn = (call: ApiCall, world: World) => JsonObject | Promise<JsonObject>;

/** Something the server does by itself, until it is told to end. */
export interface ApiLoop {
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
    /** The plural, or for Invalid the kind. */
    readonly kind?: string;
    readonly uid?: string;
    readonly causes?: readonly {
      readonly reason: string;
      readonly message: string;
      readonly field?: string;
    }[];
    readonly retryAfterSeconds?: number;
  };
  /** Where a list whose token is too old may go on. */
  readonly next?: { readonly continue: string };
}

/** A refusal in the API's own words; the front answers it as a Status. */
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
  /** What else is known of who asks, such as the pod a token was made out for. */
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

const nodePrefix = 'system:node:';

/** The node a user is, if it is one. Without a name it is none: it would be the node of all pods that have none yet. */
export function nodeOf({ name, groups }: ApiUser): string | undefined {
  const isNode = groups.includes('system:nodes') && name.startsWith(nodePrefix);
  return isNode && name !== nodePrefix ? name.slice(nodePrefix.length) : undefined;
}

/** One call as the server sees it. */
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
  /** A rehearsal does all but the last step; it is meant unless given. */
  readonly mode?: 'meant' | 'rehearsal';
  /** Shown to the caller, whatever becomes of the request. */
  readonly warn?: ((text: string) => void) | undefined;
}

/** The resource and its part as permissions name them, such as `pods/status`. */
export function targetOf(of: {
  readonly resource: Pick<ApiResource, 'plural'>;
  readonly subresource?: string | undefined;
}): string {
  const { resource, subresource } = of;
  return subresource === undefined ? resource.plural : `${resource.plural}/${subresource}`;
}

export function describeRequest({ verb, resource, name, subresource }: ApiRequest): string {
  return [`${verb} ${resource.plural}`, name, subresource].filter((part) => part !== undefined).join('/');
}
