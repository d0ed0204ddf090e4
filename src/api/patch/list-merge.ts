import { badPatch, orderPrefix, patchWord, withoutDirectives } from './directives.ts';
import { isJsonObject, type JsonObject } from './json.ts';

type Items = readonly unknown[];

/** Lists of single values are sets: what is there twice counts once. */
export function mergeValues(current: Items = [], added: Items = []): Items {
  return [...new Set([...current, ...added])];
}

export interface Merging {
  readonly current: Items | undefined;
  readonly changes: Items | undefined;
  readonly key: string;
  /** The value of `$setElementOrder`. */
  readonly order: Items | undefined;
  readonly mergeItem: (item: JsonObject, change: JsonObject) => JsonObject;
}

/** Items of the patch change the ones of their key, or join at the end; `$patch` in an item says more. */
export function mergeItems({ current, changes = [], key, order = [], mergeItem }: Merging): Items {
  const parts = sorted(changes, key);
  if (current === undefined || parts.replaces) return parts.others.map((item) => withoutDirectives(item));
  const isSame = sameItem(key, [current, changes, order]);
  const kept = current.filter((item) => !parts.deleted.some((deleted) => isSame(item, deleted)));
  for (const change of parts.others) {
    const at = kept.findIndex((item) => isSame(item, change));
    const item = kept[at];
    if (isJsonObject(item)) kept[at] = mergeItem(item, change);
    else kept.push(mergeItem({}, change));
  }
  return kept;
}

/** Lists in which one key may stand for several items, as a port has one number for each protocol. */
const portKeys: readonly string[] = ['port', 'containerPort'];

/**
 * Whether a change is about an item. API servers look at the key alone, and so mix up ports of one number; here a port
 * of another protocol is another one wherever somebody speaks of more than one of that number.
 */
function sameItem(key: string, lists: readonly Items[]): (item: unknown, change: JsonObject) => boolean {
  const isShared = (value: unknown) =>
    lists.some((list) => list.filter((item) => keyOf(item, key) === value).length > 1);
  return (item, change) => {
    if (keyOf(item, key) !== change[key]) return false;
    if (!portKeys.includes(key)) return true;
    const [is, wanted] = [keyOf(item, 'protocol'), change['protocol']];
    const isOther = is !== undefined && wanted !== undefined && is !== wanted;
    return !isOther || !isShared(change[key]);
  };
}

interface SortedChanges {
  readonly replaces: boolean;
  readonly deleted: readonly JsonObject[];
  readonly others: readonly JsonObject[];
}

function sorted(changes: Items, key: string): SortedChanges {
  const items = changes.map((item) => checkedItem(item, key));
  const says = (word: string) => items.filter((item) => item[patchWord] === word);
  const [replacing, deleting] = [says('replace'), says('delete')];
  return {
    replaces: replacing.length > 0,
    deleted: deleting,
    others: items.filter((item) => !replacing.includes(item) && !deleting.includes(item)),
  };
}

function checkedItem(item: unknown, key: string): JsonObject {
  if (!isJsonObject(item)) throw badPatch(`an item of a list merged by ${key} must be an object`);
  const word = item[patchWord];
  if (word !== undefined && word !== 'replace' && word !== 'delete')
    throw badPatch(
      `${patchWord} of an item must be replace or delete: current value is ${JSON.stringify(word)}`,
    );
  if (word !== 'replace' && item[key] === undefined)
    throw badPatch(`an item of a list merged by ${key} must have ${key}`);
  return item;
}

export interface Ordering {
  readonly items: Items;
  /** The value of `$setElementOrder`. */
  readonly order: Items | undefined;
  /** The list before the patch. */
  readonly current: Items | undefined;
  /** Undefined for lists of single values. */
  readonly key: string | undefined;
  /** What the patch says of the list. */
  readonly value: Items | undefined;
}

/**
 * Brings what the patch knows of into the order it wants: that of `$setElementOrder`, or else of its own list. Items
 * only the server knows stay where they were among those that were there before.
 */
export function inOrder({ items, order, current, key, value = [] }: Ordering): Items {
  if (current === undefined && order === undefined) return items;
  const told = value.filter((item) => !isJsonObject(item) || item[patchWord] === undefined);
  if (order !== undefined) checkOrder(order, told, current ?? [], value, key);
  const replaces = value.some((item) => isJsonObject(item) && item[patchWord] === 'replace');
  const wanted = (order ?? (replaces ? [] : told)).map((item) => keyOf(item, key));
  // As API servers do: where an item was deleted the first new one takes its place, and equal keys come together.
  const placed = replaces ? items : items.slice(0, current?.length ?? 0);
  const before = placed.map((item) => keyOf(item, key));
  const place = (item: unknown) => before.indexOf(keyOf(item, key));
  const known = items
    .filter((item) => wanted.includes(keyOf(item, key)))
    .sort((a, b) => wanted.indexOf(keyOf(a, key)) - wanted.indexOf(keyOf(b, key)));
  const others = items.filter((item) => !wanted.includes(keyOf(item, key)));
  return merged(
    known,
    others.toSorted((a, b) => place(a) - place(b)),
    place,
  );
}

function merged(known: Items, others: Items, place: (item: unknown) => number): Items {
  const left = [...others];
  const result: unknown[] = [];
  for (const item of known) {
    while (place(item) >= 0 && left[0] !== undefined && place(left[0]) < place(item)) {
      result.push(left.shift());
    }
    result.push(item);
  }
  return [...result, ...left];
}

/** A patch that changes an item has to say where it belongs; and of nothing there is no order. */
function checkOrder(order: Items, told: Items, current: Items, value: Items, key: string | undefined): void {
  if (current.length === 0 && value.length === 0)
    throw badPatch(`${orderPrefix} must be about a list that has items`);
  if (order.length === 0) return;
  const wanted = order.map((item) => keyOf(item, key));
  const places = told.map((item) => wanted.indexOf(keyOf(item, key)));
  // Of a key that is there twice the patch may tell both.
  const isTwin = (place: number) => wanted.lastIndexOf(wanted[place]) > place;
  const isSorted = places.every((place, index) => {
    const last = places[index - 1] ?? -1;
    return place > last || (place >= 0 && place === last && isTwin(place));
  });
  if (!isSorted) throw badPatch(`the list of a patch must agree with its ${orderPrefix} list`);
}

function keyOf(item: unknown, key: string | undefined): unknown {
  if (key === undefined) return item;
  return isJsonObject(item) ? item[key] : undefined;
}
