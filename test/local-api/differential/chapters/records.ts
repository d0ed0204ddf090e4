import { ask, chapter, create, hear, patch, type Step, watch } from '../step.ts';
import { core } from './objects.ts';

const older = `${core}/events`;
const newer = '/apis/events.k8s.io/v1/namespaces/<ns>/events';
const about = { kind: 'Pod', namespace: '<ns>', name: 'p', uid: 'u', apiVersion: 'v1' };

function ofOld(): readonly Step[] {
  const event = (name: string, more: object = {}) => ({
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name },
    involvedObject: about,
    reason: 'Started',
    message: 'it started',
    type: 'Normal',
    source: { component: 'kubelet', host: 'n1' },
    firstTimestamp: '2024-01-01T00:00:00Z',
    lastTimestamp: '2024-01-01T00:00:10Z',
    count: 2,
    ...more,
  });
  return [
    create(older, event('old'), { keep: 'old' }),
    ask(`GET ${newer}/old`, { what: 'a core event by the events.k8s.io path' }),
    create(older, event('elsewhere', { involvedObject: { ...about, namespace: 'other' } })),
    create(older, event('homeless', { involvedObject: { kind: 'Node', name: 'n' } })),
    create(
      '/api/v1/namespaces/default/events',
      event('records-homeless', { involvedObject: { kind: 'Node', name: 'n' } }),
    ),
    create(older, event('type', { type: 'Sometimes' })),
    create(
      older,
      event('bare', {
        reason: undefined,
        message: undefined,
        type: undefined,
        source: undefined,
        count: undefined,
      }),
    ),
    create(older, event('long', { message: 'x'.repeat(2000) })),
    create(older, event('long-reason', { reason: 'x'.repeat(129) })),
    create(older, event('timed', { eventTime: '2024-01-01T00:00:00.000000Z' })),
    create(
      older,
      event('timed', {
        eventTime: '2024-01-01T00:00:00.000000Z',
        reportingComponent: 'example.org/c',
        reportingInstance: 'i',
        action: 'Act',
      }),
    ),
    patch('strategic', `${older}/old`, { count: 3, lastTimestamp: '2024-01-01T00:00:20Z' }),
    patch('merge', `${older}/old`, { involvedObject: { name: 'other' } }),
    ask(`GET ${older}?fieldSelector=involvedObject.name=p,reason=Started,type=Normal`),
    ask(`GET ${older}?fieldSelector=source=kubelet,metadata.name=old`),
    ask(`GET ${older}?fieldSelector=involvedObject.uid=u,metadata.name=old`),
  ];
}

function ofNew(): readonly Step[] {
  const event = (name: string, more: object = {}) => ({
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: { name },
    eventTime: '2024-01-01T00:00:00.000000Z',
    reportingController: 'example.org/c',
    reportingInstance: 'i-1',
    action: 'Act',
    reason: 'Acted',
    regarding: about,
    note: 'it acted',
    type: 'Normal',
    ...more,
  });
  return [
    create(newer, event('new'), { keep: 'new' }),
    ask(`GET ${older}/new`, { what: 'an events.k8s.io event by the core path' }),
    create(
      newer,
      event('bare', {
        eventTime: undefined,
        reportingController: undefined,
        reportingInstance: undefined,
        action: undefined,
        reason: undefined,
        type: undefined,
      }),
    ),
    create(newer, event('controller', { reportingController: 'a b' })),
    create(newer, event('instance', { reportingInstance: 'x'.repeat(129) })),
    create(newer, event('action', { action: 'x'.repeat(129) })),
    create(newer, event('note', { note: 'x'.repeat(1025) })),
    create(newer, event('type', { type: 'Other' })),
    create(newer, event('series', { series: { count: 1, lastObservedTime: '2024-01-01T00:00:00.000000Z' } })),
    create(newer, event('series-time', { series: { count: 2 } })),
    create(newer, event('deprecated', { deprecatedCount: 5, deprecatedSource: { component: 'x' } })),
    watch(
      'events',
      `${newer}?watch=1&resourceVersion=<new.metadata.resourceVersion>&fieldSelector=metadata.name=new`,
    ),
    patch('strategic', `${newer}/new`, {
      series: { count: 2, lastObservedTime: '2024-01-01T00:00:00.000000Z' },
    }),
    patch('strategic', `${newer}/new`, { note: 'other' }),
    patch('strategic', `${newer}/new`, {
      series: { count: 3, lastObservedTime: '2024-01-01T00:00:10.000000Z' },
    }),
    hear('events', 2),
    ask(`GET ${newer}?fieldSelector=regarding.name=p,reportingController=example.org/c`),
    ask(`GET ${newer}?fieldSelector=involvedObject.name=p`),
    ask(`DELETE ${newer}/new`),
    hear('events', 1),
    ask(`DELETE ${older}`),
  ];
}

function leases(): readonly Step[] {
  const at = '/apis/coordination.k8s.io/v1/namespaces/<ns>/leases';
  const lease = (name: string, spec: object, metadata: object = {}) => ({
    metadata: { name, ...metadata },
    spec,
  });
  return [
    create(
      at,
      lease('l', {
        holderIdentity: 'a',
        leaseDurationSeconds: 10,
        acquireTime: '2024-01-01T00:00:00.500000Z',
      }),
      { keep: 'l' },
    ),
    create(at, lease('short', { acquireTime: '2024-01-01T00:00:00.5Z' }), {
      what: 'a time with other precision',
    }),
    create(at, lease('zero', { leaseDurationSeconds: 0 })),
    create(at, lease('less', { leaseTransitions: -1 })),
    create(at, lease('strategy', { strategy: 'x' })),
    create(at, lease('empty', {})),
    ask(`PUT ${at}/l`, { body: lease('l', { holderIdentity: 'b' }), what: 'without a version' }),
    ask(`PUT ${at}/l`, {
      body: lease(
        'l',
        { holderIdentity: 'b', renewTime: '2024-01-01T00:00:00.123456Z' },
        { resourceVersion: '<l.metadata.resourceVersion>' },
      ),
      what: 'with its version',
    }),
    ask(`PUT ${at}/l`, {
      body: lease('l', { holderIdentity: 'c' }, { resourceVersion: '<l.metadata.resourceVersion>' }),
      what: 'with an old version',
    }),
    ask(`PUT ${at}/made`, {
      body: lease('made', { holderIdentity: 'b' }),
      what: 'a lease created by an update',
    }),
    patch('merge', `${at}/l`, { spec: { holderIdentity: null } }),
    patch('merge', `${at}/l`, { spec: { renewTime: 'yesterday' } }),
    ask(`DELETE ${at}/l`),
  ];
}

export const records = chapter('records', [...ofOld(), ...ofNew(), ...leases()]);
