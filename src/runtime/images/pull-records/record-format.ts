import { createHash } from 'node:crypto';
import { apiTime, KubelingError } from '../../../lib/index.ts';
import { goJson } from '../../containers/go-format.ts';
import type { Coordinates, PullCredential } from '../credentials/keyring.ts';

/**
 * Pull intents and records in the Go kubelet's file format, so that either kubelet can use the
 * other's files.
 */

export interface RecordedSecret extends Coordinates {
  readonly credentialHash: string;
}

/**
 * The credentials recorded for an image; if there are none, access to the image must be verified by
 * a pull.
 */
export interface RecordedCredentials {
  readonly kubernetesSecrets: readonly RecordedSecret[];
  readonly kubernetesServiceAccounts: readonly Coordinates[];
  /** Whether every pod of the node may use the image. */
  readonly nodePodsAccessible: boolean;
}

export interface PulledRecord {
  /** The time of the last change in milliseconds since the Unix epoch. */
  readonly lastUpdatedMs: number;
  readonly imageRef: string;
  /** The credentials by image name as in the pod's spec, without tag and digest. */
  readonly credentialMapping: ReadonlyMap<string, RecordedCredentials>;
}

const group = 'kubelet.config.k8s.io';
const currentVersion = `${group}/v1beta1`;
const versions = [currentVersion, `${group}/v1alpha1`];
const filePrefix = 'sha256-';

export function recordFileName(key: string): string {
  return `${filePrefix}${createHash('sha256').update(key).digest('hex')}`;
}

/** Whether a file of this name contains a pull record; other files in the directory are ignored. */
export function isRecordFile(name: string): boolean {
  return name.startsWith(filePrefix) && !name.endsWith('.tmp');
}

export function encodeIntent(image: string): string {
  return `${goJson({ kind: 'ImagePullIntent', apiVersion: currentVersion, image })}\n`;
}

export function encodeRecord({ lastUpdatedMs, imageRef, credentialMapping }: PulledRecord): string {
  const sorted = [...credentialMapping].toSorted(([one], [other]) => (one < other ? -1 : 1));
  const mapping = Object.fromEntries(sorted.map(([image, found]) => [image, encodeCredentials(found)]));
  const record = {
    kind: 'ImagePulledRecord',
    apiVersion: currentVersion,
    lastUpdatedTime: apiTime(lastUpdatedMs),
    imageRef,
    ...(sorted.length === 0 ? {} : { credentialMapping: mapping }),
  };
  return `${goJson(record)}\n`;
}

function encodeCredentials(found: RecordedCredentials): object {
  const { kubernetesSecrets: secrets, kubernetesServiceAccounts: accounts, nodePodsAccessible } = found;
  const place = ({ uid, namespace, name }: Coordinates) => ({ uid, namespace, name });
  return {
    ...(secrets.length === 0
      ? {}
      : {
          kubernetesSecrets: secrets.map((each) => ({
            ...place(each),
            credentialHash: each.credentialHash,
          })),
        }),
    ...(accounts.length === 0 ? {} : { kubernetesServiceAccounts: accounts.map(place) }),
    ...(nodePodsAccessible ? { nodePodsAccessible } : {}),
  };
}

export interface Decoded<T> {
  readonly value: T;
  /** Whether the file has the version that this kubelet writes. */
  readonly version: 'current' | 'older';
}

/** Decodes a pull intent; throws FILE_CORRUPT. */
export function decodeIntent(text: string): Decoded<string> {
  const { fields, version } = open(text, 'ImagePullIntent', ['image']);
  return { value: textIn(fields, 'image'), version };
}

/**
 * Decodes a pull record. Throws FILE_CORRUPT, also for unknown fields, which could restrict the
 * access to the image.
 */
export function decodeRecord(text: string): Decoded<PulledRecord> {
  const known = ['lastUpdatedTime', 'imageRef', 'credentialMapping'];
  const { fields, version } = open(text, 'ImagePulledRecord', known);
  const time = fields['lastUpdatedTime'] ?? null;
  const mapping = Object.entries(recordIn(fields['credentialMapping'] ?? {}));
  const value = {
    lastUpdatedMs: time === null ? 0 : timeOf(time),
    imageRef: textIn(fields, 'imageRef'),
    credentialMapping: new Map(mapping.map(([image, found]) => [image, decodeCredentials(found)])),
  };
  return { value, version };
}

function decodeCredentials(value: unknown): RecordedCredentials {
  const fields = recordIn(value);
  checkKnown(fields, ['kubernetesSecrets', 'kubernetesServiceAccounts', 'nodePodsAccessible']);
  const nodePodsAccessible = fields['nodePodsAccessible'] ?? false;
  if (typeof nodePodsAccessible !== 'boolean') throw corrupt('nodePodsAccessible must be true or false');
  return {
    kubernetesSecrets: listIn(fields, 'kubernetesSecrets').map((item) => {
      const secret = recordIn(item);
      checkKnown(secret, ['uid', 'namespace', 'name', 'credentialHash']);
      return { ...placeIn(secret), credentialHash: textIn(secret, 'credentialHash') };
    }),
    kubernetesServiceAccounts: listIn(fields, 'kubernetesServiceAccounts').map((item) => {
      const account = recordIn(item);
      checkKnown(account, ['uid', 'namespace', 'name']);
      return placeIn(account);
    }),
    nodePodsAccessible,
  };
}

type Fields = Readonly<Record<string, unknown>>;

function open(text: string, kind: string, known: readonly string[]) {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    throw corrupt('it must hold JSON');
  }
  const fields = recordIn(parsed);
  if (fields['kind'] !== kind) throw corrupt(`its kind must be ${kind}`);
  const version = fields['apiVersion'];
  if (typeof version !== 'string' || !versions.includes(version)) {
    throw corrupt(`its apiVersion must be ${versions.join(' or ')}`);
  }
  checkKnown(fields, ['kind', 'apiVersion', ...known]);
  return { fields, version: version === currentVersion ? 'current' : 'older' } as const;
}

function checkKnown(fields: Fields, known: readonly string[]): void {
  const unknown = Object.keys(fields).find((name) => !known.includes(name));
  if (unknown !== undefined) throw corrupt(`the field ${unknown} is unknown`);
}

function recordIn(value: unknown): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw corrupt('it must be an object with fields');
  }
  return value as Fields;
}

function listIn(fields: Fields, name: string): readonly unknown[] {
  const value = fields[name] ?? [];
  if (!Array.isArray(value)) throw corrupt(`${name} must be a list`);
  return value;
}

function textIn(fields: Fields, name: string): string {
  const value = fields[name] ?? '';
  if (typeof value !== 'string') throw corrupt(`${name} must be text`);
  return value;
}

function placeIn(fields: Fields): Coordinates {
  return { uid: textIn(fields, 'uid'), namespace: textIn(fields, 'namespace'), name: textIn(fields, 'name') };
}

function timeOf(value: unknown): number {
  const ms = typeof value === 'string' ? Date.parse(value) : Number.NaN;
  if (Number.isNaN(ms)) throw corrupt('lastUpdatedTime must be a time');
  return ms;
}

function corrupt(why: string): KubelingError {
  return new KubelingError('FILE_CORRUPT', `Cannot use an image pull record as ${why}`);
}

const nobody: RecordedCredentials = {
  kubernetesSecrets: [],
  kubernetesServiceAccounts: [],
  nodePodsAccessible: false,
};

/**
 * Returns the record entry for a successful pull with these credentials; an anonymous pull makes
 * the image accessible to all pods.
 */
export function recordedOf(used: PullCredential | 'anonymous'): RecordedCredentials {
  if (used === 'anonymous' || used.source.kind === 'node') return { ...nobody, nodePodsAccessible: true };
  const { kind, uid, namespace, name } = used.source;
  if (kind === 'service-account') return { ...nobody, kubernetesServiceAccounts: [{ uid, namespace, name }] };
  return { ...nobody, kubernetesSecrets: [{ uid, namespace, name, credentialHash: used.hash }] };
}

/** Returns the record with the added credentials; the same object when nothing changes. */
export function withCredentials(
  record: PulledRecord,
  image: string,
  added: RecordedCredentials,
  nowMs: number,
): PulledRecord {
  const before = record.credentialMapping.get(image);
  const after = before === undefined ? added : merged(before, added);
  if (after === before) return record;
  const credentialMapping = new Map(record.credentialMapping).set(image, after);
  return { ...record, credentialMapping, lastUpdatedMs: nowMs };
}

function merged(before: RecordedCredentials, added: RecordedCredentials): RecordedCredentials {
  if (before.nodePodsAccessible) return before;
  if (added.nodePodsAccessible) return { ...nobody, nodePodsAccessible: true };
  const { kubernetesSecrets: secrets, kubernetesServiceAccounts: accounts } = added;
  const newSecrets = secrets.filter(
    (each) =>
      !before.kubernetesSecrets.some(
        (old) => isSame(old, each) && old.credentialHash === each.credentialHash,
      ),
  );
  const newAccounts = accounts.filter(
    (each) => !before.kubernetesServiceAccounts.some((old) => isSame(old, each)),
  );
  if (newSecrets.length === 0 && newAccounts.length === 0) return before;
  return {
    nodePodsAccessible: false,
    kubernetesSecrets: inOrder(replaced<RecordedSecret>(before.kubernetesSecrets, newSecrets)),
    kubernetesServiceAccounts: inOrder(replaced(before.kubernetesServiceAccounts, newAccounts)),
  };
}

/** A secret has one entry in the record, with its latest login. */
function replaced<T extends Coordinates>(before: readonly T[], added: readonly T[]): readonly T[] {
  return [...before.filter((old) => !added.some((each) => isSame(old, each))), ...added];
}

export function isSame(one: Coordinates, other: Coordinates): boolean {
  return one.uid === other.uid && one.namespace === other.namespace && one.name === other.name;
}

function inOrder<T extends Coordinates>(items: readonly T[]): readonly T[] {
  const compare = (one: string, other: string) => (one === other ? 0 : one < other ? -1 : 1);
  return items.toSorted(
    (a, b) => compare(a.namespace, b.namespace) || compare(a.name, b.name) || compare(a.uid, b.uid),
  );
}
