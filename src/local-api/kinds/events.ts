import type { JsonObject } from '../../api/index.ts';
import { sameValue } from '../../api/index.ts';
import type { Event, EventsEvent } from '../../kinds/index.ts';
import { dnsSubdomain, qualifiedName } from '../../pods/validation/index.ts';
import type { FieldCause, ResourceStrategy, ResourceView, StoredObject } from '../api/index.ts';
import { immutable, invalid, required } from '../validation/causes.ts';
import { withFields } from '../validation/metadata.ts';
import { events } from './resources.ts';

/**
 * Events are stored in the form of the core group; requests to events.k8s.io are validated more
 * strictly.
 */
export const eventStrategy: ResourceStrategy = {
  createOnUpdate: 'allowed',
  prepare: (object) => (object['source'] === undefined ? { ...object, source: {} } : object),
  validate: (object, { resource }) =>
    eventCauses(object, resource.group === '' ? 'reportingComponent' : 'reportingController'),
};

/** The resource events.k8s.io/v1, which presents the stored events. */
export const eventsView: ResourceView = {
  of: events,
  toView: (stored) => toEventsV1(stored as unknown as Event) as unknown as StoredObject,
  stored: (shown) => toCoreV1(shown as unknown as EventsEvent) as unknown as JsonObject,
  validate: strictCauses,
};

function toEventsV1(event: Event): EventsEvent {
  const {
    involvedObject,
    message,
    source,
    firstTimestamp,
    lastTimestamp,
    count,
    reportingComponent,
    ...same
  } = event;
  return withFields<JsonObject>(
    { ...same, apiVersion: 'events.k8s.io/v1' },
    {
      regarding: involvedObject,
      note: message,
      reportingController: reportingComponent === '' ? undefined : reportingComponent,
      reportingInstance: event.reportingInstance === '' ? undefined : event.reportingInstance,
      deprecatedSource: source,
      deprecatedFirstTimestamp: firstTimestamp,
      deprecatedLastTimestamp: lastTimestamp,
      deprecatedCount: count,
    },
  ) as unknown as EventsEvent;
}

function toCoreV1(event: EventsEvent): Event {
  const {
    regarding,
    note,
    deprecatedSource,
    deprecatedFirstTimestamp,
    deprecatedLastTimestamp,
    deprecatedCount,
    reportingController,
    ...same
  } = event;
  return withFields<JsonObject>(
    { ...same, apiVersion: 'v1' },
    {
      involvedObject: regarding ?? {},
      message: note,
      reportingComponent: reportingController ?? '',
      reportingInstance: event.reportingInstance ?? '',
      source: deprecatedSource,
      firstTimestamp: deprecatedFirstTimestamp,
      lastTimestamp: deprecatedLastTimestamp,
      count: deprecatedCount,
    },
  ) as unknown as Event;
}

function asEvent(object: StoredObject): Event {
  return object as unknown as Event;
}

type Reporter = 'reportingComponent' | 'reportingController';

function eventCauses(object: StoredObject, reporter: Reporter): readonly FieldCause[] {
  const event = asEvent(object);
  const { namespace = '' } = object.metadata;
  return [
    ...(isNew(event)
      ? newCauses(event, namespace, reporter)
      : namespaceCauses(event, namespace, ['', 'default'])),
    ...dnsSubdomain(namespace).map((message) => invalid('namespace', namespace, message)),
  ];
}

/**
 * An event with an eventTime comes from the newer API events.k8s.io/v1, which has more required
 * fields.
 */
function isNew({ eventTime }: Event): boolean {
  return eventTime !== undefined && eventTime !== '';
}

function namespaceCauses(
  { involvedObject }: Event,
  namespace: string,
  homes: readonly string[],
): readonly FieldCause[] {
  const own = involvedObject?.namespace ?? '';
  const isHome = own === '' ? homes.includes(namespace) : own === namespace;
  return isHome ? [] : [invalid('involvedObject.namespace', own, 'does not match event.namespace')];
}

const maxFieldBytes = 128;
const maxNoteBytes = 1024;

function newCauses(event: Event, namespace: string, reporter: Reporter): readonly FieldCause[] {
  const own = event.involvedObject?.namespace ?? '';
  const controller = event.reportingComponent ?? '';
  return [
    ...(own === '' ? namespaceCauses(event, namespace, ['default', 'kube-system']) : []),
    ...(controller === '' ? [required(reporter)] : []),
    ...qualifiedName(controller).map((message) => invalid(reporter, controller, message)),
    ...requiredTextCauses('reportingInstance', event.reportingInstance),
    ...requiredTextCauses('action', event.action),
    ...requiredTextCauses('reason', event.reason),
    ...(Buffer.byteLength(event.message ?? '') > maxNoteBytes ? [tooMany('message', maxNoteBytes)] : []),
  ];
}

function requiredTextCauses(field: string, word = ''): readonly FieldCause[] {
  if (word === '') return [required(field)];
  return Buffer.byteLength(word) > maxFieldBytes ? [tooMany(field, maxFieldBytes)] : [];
}

function tooMany(field: string, most: number): FieldCause {
  return invalid(field, '', `can have at most ${most} characters`);
}

function strictCauses(object: StoredObject, before: StoredObject | undefined): readonly FieldCause[] {
  const event = asEvent(object);
  return before === undefined ? strictNew(event) : strictChange(event, asEvent(before));
}

function strictNew(event: Event): readonly FieldCause[] {
  const { type = '', source = {} } = event;
  const unset = [
    ...(event.firstTimestamp === undefined ? [] : ['firstTimestamp']),
    ...(event.lastTimestamp === undefined ? [] : ['lastTimestamp']),
    ...((event.count ?? 0) === 0 ? [] : ['count']),
    ...((source.component ?? '') === '' && (source.host ?? '') === '' ? [] : ['source']),
  ];
  return [
    ...seriesCauses(event),
    ...(isNew(event) ? [] : [required('eventTime')]),
    ...(['Normal', 'Warning'].includes(type) ? [] : [invalid('type', '', `has invalid value: ${type}`)]),
    ...unset.map((field) => invalid(field, '', 'needs to be unset')),
  ];
}

function seriesCauses({ series }: Event): readonly FieldCause[] {
  if (series === undefined) return [];
  return [
    ...((series.count ?? 0) < 2 ? [invalid('series.count', '', 'should be at least 2')] : []),
    ...((series.lastObservedTime ?? '') === '' ? [required('series.lastObservedTime')] : []),
  ];
}

const fixed = [
  'involvedObject',
  'reason',
  'message',
  'source',
  'firstTimestamp',
  'lastTimestamp',
  'count',
  'type',
  'eventTime',
  'action',
  'related',
] as const;

function strictChange(event: Event, before: Event): readonly FieldCause[] {
  return [
    ...(sameValue(event.series, before.series) ? [] : seriesCauses(event)),
    ...fixed.flatMap((field) => immutable(field, before[field], event[field])),
    ...immutable('reportingController', before.reportingComponent, event.reportingComponent),
    ...immutable('reportingInstance', before.reportingInstance, event.reportingInstance),
  ];
}
