import type { Toleration } from '../kinds/index.ts';
import { decodeTree, FieldPath, KindTable, type PodSpec, type Pod as WrittenPod } from '../kinds/index.ts';
import {
  describeError,
  readYamlDocuments,
  type TextPosition,
  type YamlDocument,
  type YamlTree,
  YieldingCounter,
} from '../lib/index.ts';
import { withPodDefaults } from '../pods/defaults/index.ts';
import type { FieldProblem, PodRules } from '../pods/index.ts';
import { annotations, type Pod, type PodUid, podUid, sameJson } from '../pods/index.ts';
import { refusedReferences, validatePod } from '../pods/validation/index.ts';
import type { ManifestOrigin } from './manifest-origin.ts';
import { bounded, problemAt, type SourceProblem } from './problems.ts';
import { entryOf, textOf } from './uid/internal-quantity.ts';
import type { StaticUidGenerator } from './uid/static-uid.ts';

/** Size limit of a manifest in bytes; larger files are rejected. */
export const manifestLimit: number = 10 * 1024 * 1024;

/**
 * Number of pods decoded between two yields; for ordinary pods this takes about ten milliseconds.
 */
const podsPerSlice = 50;

const howToRemovePods = {
  file: 'delete the file to remove its pod',
  http: 'serve a PodList without items to have no pods',
} as const;

/**
 * Kinds that manifests may contain beside pods when static pods may refer to API objects. Another
 * component creates these objects.
 */
export const companionKinds: ReadonlySet<string> = new Set([
  'ConfigMap',
  'Secret',
  'PersistentVolume',
  'PersistentVolumeClaim',
]);

export interface ManifestPod {
  readonly pod: Pod;
  /** Position in the manifest's text at which the pod starts. */
  readonly at: TextPosition;
}

export interface ManifestReading {
  readonly pods: readonly ManifestPod[];
  readonly problems: readonly SourceProblem[];
  /** Whether every part of the manifest was valid. If not, a missing pod may still be desired. */
  readonly complete: boolean;
}

/**
 * Reads manifests with one pod, several documents, or lists of pods. Each pod is validated
 * separately.
 */
export class ManifestReader {
  readonly #rules: PodRules;
  readonly #table = new KindTable();
  #uids: StaticUidGenerator | undefined;

  constructor(rules: PodRules) {
    this.#rules = rules;
  }

  /** Reads a manifest; never rejects, but returns failures as problems. */
  async read(bytes: Uint8Array, origin: ManifestOrigin): Promise<ManifestReading> {
    try {
      return await this.#read(bytes, origin);
    } catch (error) {
      return failed(origin, `cannot be read: ${describeError(error)}`);
    }
  }

  async #read(bytes: Uint8Array, origin: ManifestOrigin): Promise<ManifestReading> {
    if (bytes.byteLength >= manifestLimit) return failed(origin, manifestTooLarge(bytes.byteLength));
    const text = decodeText(bytes);
    if (text === undefined) return failed(origin, 'must be text in UTF-8, but is binary');
    const documents = await readYamlDocuments(text);
    if (documents.length === 0)
      return failed(origin, `must define a pod: it is empty (${howToRemovePods[origin.source]})`);
    const parts = documents
      .flatMap((document) => partsOf(document, origin, this.#rules))
      .filter((part) => part.kind !== 'beside');
    const uids = await this.#loadUids();
    const slices = new YieldingCounter(podsPerSlice);
    const read: (ReadPod | Extract<Part, { kind: 'wrong' }>)[] = [];
    for (const part of parts) {
      read.push(part.kind === 'wrong' ? part : naming(part.tree, this.#pod(part, origin, uids), origin));
      if (slices.count()) await slices.yield();
    }
    return {
      pods: read.flatMap((part) => ('pod' in part && part.pod ? [{ pod: part.pod, at: part.at }] : [])),
      problems: bounded(read.flatMap((part) => part.problems).sort(byPosition)),
      complete: read.every((part) => 'pod' in part && part.pod !== undefined),
    };
  }

  /** Loads the UID module with the first manifest, because many nodes have none. */
  async #loadUids(): Promise<StaticUidGenerator> {
    const { StaticUidGenerator } = await import('./uid/static-uid.ts');
    this.#uids ??= new StaticUidGenerator();
    return this.#uids;
  }

  #pod(part: PodPart, origin: ManifestOrigin, uids: StaticUidGenerator): ReadPod {
    const { value, findings } = decodeTree<WrittenPod>(this.#table, 'Pod', part.tree);
    const decoding = findings.map((finding) =>
      problemAt(origin, { ...finding, field: finding.field.toString() }),
    );
    if (findings.some(({ severity }) => severity === 'error')) return { problems: decoding, at: part.at };
    if (!value.metadata?.name) {
      const at = FieldPath.root.child('metadata').positionIn(part.tree);
      const nameless = problemAt(origin, {
        at,
        field: 'metadata.name',
        message: 'must be set: a pod needs a name',
      });
      return { problems: [...decoding, nameless], at: part.at };
    }
    const defaulted = withPodDefaults(value, this.#rules.enabled);
    const given = value.metadata.uid;
    const uid = given ? podUid(given) : uids.uidOf(defaulted, part.tree, origin);
    const pod = toStaticPod(defaulted, uid, origin);
    const refused = this.#validate(pod).map(({ field, message }) =>
      problemAt(origin, { at: field.positionIn(part.tree), field: field.toString(), message: cut(message) }),
    );
    const problems = [...decoding, ...refused];
    return refused.length > 0 ? { problems, at: part.at } : { problems, at: part.at, pod };
  }

  #validate(pod: Pod & { readonly spec: PodSpec }): readonly FieldProblem[] {
    const findings = validatePod(pod, this.#rules, this.#table);
    return [...findings, ...refusedReferences(pod.spec, this.#rules)];
  }
}

const longestMessage = 600;

/** Truncates a message, which may contain an invalid value as long as the manifest. */
function cut(message: string): string {
  return message.length > longestMessage ? `${message.slice(0, longestMessage)}…` : message;
}

interface ReadPod {
  readonly problems: readonly SourceProblem[];
  readonly at: TextPosition;
  /** The validated pod; undefined when it is invalid. */
  readonly pod?: Pod;
}

interface PodPart {
  readonly kind: 'pod';
  readonly tree: YamlTree;
  readonly at: TextPosition;
}

type Part =
  | PodPart
  | { readonly kind: 'wrong'; readonly problems: readonly SourceProblem[] }
  /** An object other than a pod, such as a ConfigMap, that pods use. */
  | { readonly kind: 'beside' };

/** Adds the name of the affected pod to each problem, when the manifest defines it. */
function naming(tree: YamlTree, read: ReadPod, { nodeName }: ManifestOrigin): ReadPod {
  const metadata = entryOf(tree, 'metadata');
  const name = metadata === undefined ? undefined : textAt(metadata, 'name');
  if (metadata === undefined || name === undefined) return read;
  const namespace = textAt(metadata, 'namespace') || 'default';
  const pods = [`${nameOnNode(name, nodeName)}_${namespace}`];
  return { ...read, problems: read.problems.map((problem) => ({ ...problem, pods })) };
}

export function manifestTooLarge(size: number): string {
  return `must be smaller than ${manifestLimit} bytes: it has ${size}`;
}

function failed(origin: ManifestOrigin, message: string): ManifestReading {
  return { pods: [], problems: [problemAt(origin, { message })], complete: false };
}

function byPosition(a: SourceProblem, b: SourceProblem): number {
  return (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0);
}

/** Decodes UTF-8 without a leading byte order mark; undefined for binary content. */
function decodeText(bytes: Uint8Array): string | undefined {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    return text.includes('\0') ? undefined : text;
  } catch {
    return undefined;
  }
}

function partsOf(document: YamlDocument, origin: ManifestOrigin, rules: PodRules): readonly Part[] {
  const { tree, problems } = document;
  if (tree === undefined)
    return [
      {
        kind: 'wrong',
        problems: problems.map((problem) => problemAt(origin, { at: problem, message: problem.message })),
      },
    ];
  const kind = textAt(tree, 'kind');
  const isSibling = (item: YamlTree) =>
    rules.apiReferences === 'allowed' && companionKinds.has(textAt(item, 'kind') ?? '');
  if (isSibling(tree)) return [{ kind: 'beside' }];
  if (kind !== 'PodList' && kind !== 'List') return [podPart(tree, origin, 'must')];
  const version = wrongVersion(tree, origin);
  if (version !== undefined) return [version];
  const items = entryOf(tree, 'items');
  if (items === undefined || items.kind !== 'list')
    return [invalidPart(origin, items?.at ?? tree.at, 'items', 'must be a list of pods')];
  return items.items.map((item) =>
    isSibling(item) ? { kind: 'beside' } : podPart(item, origin, kind === 'List' ? 'must' : 'may'),
  );
}

/**
 * Checks kind and version of a pod in a manifest; an item of a pod list need not repeat them.
 */
function podPart(tree: YamlTree, origin: ManifestOrigin, requirement: 'must' | 'may'): Part {
  if (tree.kind !== 'map') return invalidPart(origin, tree.at, '', 'must be a map of fields, like a pod');
  const kind = textAt(tree, 'kind');
  const silent = requirement === 'may' && kind === undefined;
  if (kind !== 'Pod' && !silent) {
    const written = kind === undefined ? 'it is not set' : `current value is ${JSON.stringify(kind)}`;
    return invalidPart(
      origin,
      FieldPath.root.child('kind').positionIn(tree),
      'kind',
      `must be Pod: ${written}`,
    );
  }
  const version = silent && textAt(tree, 'apiVersion') === undefined ? undefined : wrongVersion(tree, origin);
  return version ?? { kind: 'pod', tree, at: tree.at };
}

function wrongVersion(tree: YamlTree, origin: ManifestOrigin): Part | undefined {
  const version = textAt(tree, 'apiVersion');
  if (version === 'v1') return undefined;
  const written = version === undefined ? 'it is not set' : `current value is ${JSON.stringify(version)}`;
  const at = FieldPath.root.child('apiVersion').positionIn(tree);
  return invalidPart(origin, at, 'apiVersion', `must be v1: ${written}`);
}

function invalidPart(origin: ManifestOrigin, at: TextPosition, field: string, message: string): Part {
  return { kind: 'wrong', problems: [problemAt(origin, { at, field, message })] };
}

function textAt(tree: YamlTree, key: string): string | undefined {
  return textOf(entryOf(tree, key));
}

/**
 * Converts a defaulted manifest to a static pod of this node: sets the node name, the UID, and the
 * pod name with the node's name as suffix, because many nodes may use the same manifest.
 */
function toStaticPod(
  manifest: WrittenPod & { readonly spec: PodSpec },
  uid: PodUid,
  origin: ManifestOrigin,
): Pod {
  const { metadata = {}, spec } = manifest;
  return {
    ...manifest,
    metadata: {
      ...metadata,
      uid,
      name: nameOnNode(metadata.name ?? '', origin.nodeName),
      namespace: metadata.namespace || 'default',
      annotations: { ...metadata.annotations, [annotations.hash]: uid },
    },
    spec: {
      ...spec,
      nodeName: origin.nodeName,
      ...(origin.source === 'file' && { tolerations: withEviction(spec.tolerations ?? []) }),
    },
    status: { ...manifest.status, phase: 'Pending' },
  };
}

function nameOnNode(name: string, nodeName: string): string {
  return `${name}-${nodeName.toLowerCase()}`;
}

const tolerateNoExecute: Toleration = { operator: 'Exists', effect: 'NoExecute' };

/** Adds a NoExecute toleration to a static pod, because it may be needed to repair the node. */
function withEviction(tolerations: readonly Toleration[]): readonly Toleration[] {
  const isEqual = (one: Toleration) =>
    !one.key &&
    !one.value &&
    one.operator === tolerateNoExecute.operator &&
    one.effect === tolerateNoExecute.effect;
  if (tolerations.some((one) => sameJson(one, tolerateNoExecute))) return tolerations;
  return tolerations.some(isEqual)
    ? tolerations.map((one) => (isEqual(one) ? tolerateNoExecute : one))
    : [...tolerations, tolerateNoExecute];
}
