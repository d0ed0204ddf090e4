import type { JsonObject } from '../../../api/index.ts';
import type { StoredObject } from '../../api/index.ts';
import { ageOf, type Cell, column, nameColumn, type Printer, wide } from './column.ts';

export const eventPrinter: Printer = {
  columns: [
    column('Last Seen', 'The time since the last occurrence.'),
    column('Type', 'Normal, or Warning for problems.'),
    column('Reason', 'The reason in one machine-readable word.'),
    column('Object', 'The object the event is about.'),
    wide('Subobject', 'The part of the object, such as a container.'),
    wide('Source', 'The component that reported the event, and its node.'),
    column('Message', 'The description of the event.'),
    wide('First Seen', 'The time since the first occurrence.'),
    wide('Count', 'The number of occurrences.'),
    { ...nameColumn, priority: 1 },
  ],
  cells: (object, nowMs) => eventCells(object, nowMs),
};

function eventCells(object: StoredObject, nowMs: number): readonly Cell[] {
  const { first, last, count } = occurrences(object, nowMs);
  const about = part(object, 'involvedObject', 'regarding');
  const kind = text(about['kind']).toLowerCase();
  const name = text(about['name']);
  return [
    last,
    text(object['type']),
    text(object['reason']),
    name === '' ? kind : `${kind}/${name}`,
    text(about['fieldPath']),
    sourceOf(object),
    (text(object['message']) || text(object['note'])).trim(),
    first,
    count,
    object.metadata.name,
  ];
}

function occurrences(object: StoredObject, nowMs: number) {
  const age = (time: unknown) => ageOf(text(time) || undefined, nowMs);
  const since = text(object['firstTimestamp']) || text(object['deprecatedFirstTimestamp']);
  const until = text(object['lastTimestamp']) || text(object['deprecatedLastTimestamp']);
  const first = age(since || object['eventTime']);
  const series = object['series'] as JsonObject | undefined;
  if (series !== undefined)
    return { first, last: age(series['lastObservedTime']), count: Number(series['count'] ?? 0) };
  // The count may be missing in an event that occurred once.
  const count = Number(object['count'] ?? object['deprecatedCount'] ?? 0) || 1;
  return { first, last: until === '' ? first : age(until), count };
}

function sourceOf(object: StoredObject): string {
  const source = part(object, 'source', 'deprecatedSource');
  const reporter = text(object['reportingComponent']) || text(object['reportingController']);
  const component = text(source['component']) || reporter;
  const instance = text(source['host']) || text(object['reportingInstance']);
  return instance === '' ? component : `${component}, ${instance}`;
}

/** The object of an event has different field names in the two event API groups. */
function part(object: StoredObject, name: string, otherName: string): JsonObject {
  return (object[name] ?? object[otherName] ?? {}) as JsonObject;
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
