import type { ConfigMap, KeyToPath, Secret } from '../../kinds/index.ts';
import { type Payload, type PayloadBudget, type PayloadFile, unusable } from './payload.ts';

/** How the keys of an object become files. */
export interface KeyMapping {
  /** All keys under their own names when there are none. */
  readonly items: readonly KeyToPath[];
  readonly defaultMode: number;
  /** Whether keys, and the object itself, may be missing. */
  readonly presence: 'required' | 'optional';
  readonly budget: PayloadBudget;
}

/** Throws VOLUME_UNUSABLE for a key that is missing. */
export function configMapPayload(configMap: ConfigMap | undefined, mapping: KeyMapping): Payload {
  const { data = {}, binaryData = {} } = configMap ?? {};
  // A key in both can be had from an object that nobody has checked: then items see the text, and the whole the bytes.
  const lists = [texts(data), bytes(binaryData)];
  const values = new Map((mapping.items.length === 0 ? lists : lists.reverse()).flat());
  return keysAsFiles(values, mapping, 'configmap references non-existent config key');
}

/** Throws VOLUME_UNUSABLE for a key that is missing. */
export function secretPayload(secret: Secret | undefined, mapping: KeyMapping): Payload {
  return keysAsFiles(new Map(bytes(secret?.data ?? {})), mapping, 'references non-existent secret key');
}

type Written = Readonly<Record<string, string>>;

function texts(data: Written): [string, Buffer][] {
  return Object.entries(data).map(([key, text]) => [key, Buffer.from(text)]);
}

function bytes(data: Written): [string, Buffer][] {
  return Object.entries(data).map(([key, text]) => [key, Buffer.from(text, 'base64')]);
}

function keysAsFiles(values: ReadonlyMap<string, Buffer>, mapping: KeyMapping, missing: string): Payload {
  const { items, defaultMode, presence, budget } = mapping;
  const files = new Map<string, PayloadFile>();
  const add = (path: string, data: Buffer, mode: number) => {
    budget.addFile(data.length);
    files.set(path, { data, mode });
  };
  if (items.length === 0) for (const [key, data] of values) add(key, data, defaultMode);
  for (const { key, path, mode = defaultMode } of items) {
    const data = values.get(key);
    if (data !== undefined) add(path, data, mode);
    else if (presence === 'required') throw unusable(`${missing}: ${key}`);
  }
  return files;
}
