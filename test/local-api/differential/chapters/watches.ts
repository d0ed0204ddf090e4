import { ask, chapter, create, hear, patch, type Step, watch } from '../step.ts';
import { boundPod, configMap, core } from './objects.ts';

const maps = `${core}/configmaps`;
const ours = 'labelSelector=in%3Dwatches';
const labels = { in: 'watches' };

function fromTheStart(): readonly Step[] {
  return [
    create(maps, configMap('a', { n: '1' }, { labels }), { keep: 'a' }),
    create(maps, configMap('b', { n: '1' }, { labels }), { keep: 'b' }),
    watch('unset', `${maps}?watch=1&${ours}`),
    hear('unset', 2),
    watch('zero', `${maps}?watch=true&${ours}&resourceVersion=0`),
    hear('zero', 2),
    watch('later', `${maps}?watch=true&${ours}&resourceVersion=<a.metadata.resourceVersion>`),
    hear('later', 1),
    ask(`PUT ${maps}/a`, { body: configMap('a', { n: '2' }, { labels }) }),
    ask(`PUT ${maps}/a`, {
      body: configMap('a', { n: '2' }, { labels }),
      what: 'a write that changes nothing',
    }),
    ask(`DELETE ${maps}/b`),
    create(maps, configMap('c', {}, { labels }), { keep: 'c' }),
    hear('unset', 3),
    hear('zero', 3),
    hear('later', 3),
    watch('resumed', `${maps}?watch=true&${ours}&resourceVersion=<b.metadata.resourceVersion>`),
    hear('resumed', 3, { what: 'later events are replayed' }),
    watch('one', `${maps}?watch=true&fieldSelector=metadata.name=a&resourceVersion=0`),
    hear('one', 1),
    watch('dry', `${maps}?watch=true&${ours}&resourceVersion=<c.metadata.resourceVersion>`),
    create(`${maps}?dryRun=All`, configMap('dry', {}, { labels })),
    ask(`DELETE ${maps}/a?dryRun=All`),
    ask(`DELETE ${maps}/a`),
    hear('dry', 1, { what: 'a dry run is not reported' }),
    hear('one', 1),
  ];
}

function initialEvents(): readonly Step[] {
  const expected = 'sendInitialEvents=true&resourceVersionMatch=NotOlderThan';
  return [
    create(maps, configMap('d', {}, { labels })),
    watch('list', `${maps}?watch=1&${ours}&${expected}&allowWatchBookmarks=true&resourceVersion=0`),
    hear('list', 3, { what: 'all objects and a bookmark' }),
    watch('list-new', `${maps}?watch=1&${ours}&${expected}&allowWatchBookmarks=true`),
    hear('list-new', 3),
    watch('list-quiet', `${maps}?watch=1&${ours}&${expected}&resourceVersion=0`),
    hear('list-quiet', 2),
    watch(
      'list-at',
      `${maps}?watch=1&${ours}&${expected}&allowWatchBookmarks=true&resourceVersion=<c.metadata.resourceVersion>`,
    ),
    hear('list-at', 3),
    watch(
      'none',
      `${maps}?watch=1&${ours}&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&resourceVersion=0`,
    ),
    patch('merge', `${maps}/d`, { data: { told: 'yes' } }),
    hear('list', 1),
    hear('none', 1),
    watch(
      'nothing',
      `${maps}?watch=1&labelSelector=in%3Dnothing&${expected}&allowWatchBookmarks=true&resourceVersion=0`,
    ),
    hear('nothing', 1, { what: 'only a bookmark' }),
    watch('refused', `${maps}?watch=1&sendInitialEvents=true`),
    watch('refused', `${maps}?watch=1&sendInitialEvents=true&resourceVersionMatch=Exact`),
    watch('refused', `${maps}?watch=1&resourceVersionMatch=NotOlderThan`),
    watch('refused', `${maps}?watch=1&resourceVersionMatch=NotOlderThan&resourceVersion=1`),
    watch('refused', `${maps}?watch=1&resourceVersion=x`),
    watch('refused', `${maps}?watch=1&labelSelector=a%20b`),
    watch('refused', `${maps}?watch=1&fieldSelector=spec.x=1`),
    watch('refused', `${maps}?watch=1&timeoutSeconds=x`),
    watch('refused', `${maps}?watch=1`, { accept: 'text/plain' }),
  ];
}

function selecting(): readonly Step[] {
  const steps = [
    { color: 'red' },
    { color: 'red', more: 'x' },
    { color: 'blue' },
    { color: 'blue', more: 'y' },
    { color: 'red', more: 'y' },
  ];
  return [
    create(maps, configMap('s', {}, { labels: { color: 'green' } }), { keep: 's' }),
    watch('red', `${maps}?watch=1&labelSelector=color%3Dred&resourceVersion=<s.metadata.resourceVersion>`),
    watch(
      'not-red',
      `${maps}?watch=1&labelSelector=color,color!%3Dred&resourceVersion=<s.metadata.resourceVersion>`,
    ),
    ...steps.map((given) => ask(`PUT ${maps}/s`, { body: configMap('s', {}, { labels: given }) })),
    ask(`DELETE ${maps}/s`),
    hear('red', 5, { what: 'entering and leaving by labels' }),
    hear('not-red', 4),
    watch(
      'red-again',
      `${maps}?watch=1&labelSelector=color%3Dred&resourceVersion=<s.metadata.resourceVersion>`,
    ),
    hear('red-again', 5, { what: 'the same when it is resumed' }),
  ];
}

function deleting(): readonly Step[] {
  const pods = `${core}/pods`;
  const held = configMap('held', {}, { finalizers: ['example.org/x'], labels });
  return [
    create(maps, held, { keep: 'held' }),
    watch(
      'held',
      `${maps}?watch=1&fieldSelector=metadata.name=held&resourceVersion=<held.metadata.resourceVersion>`,
    ),
    ask(`DELETE ${maps}/held`),
    ask(`DELETE ${maps}/held`, { what: 'again' }),
    patch('merge', `${maps}/held`, { metadata: { finalizers: ['example.org/x', 'example.org/y'] } }),
    patch('merge', `${maps}/held`, { data: { still: 'there' } }),
    create(maps, held),
    patch('merge', `${maps}/held`, { metadata: { finalizers: null } }),
    hear('held', 3, { what: 'marked, changed, deleted' }),
    create(pods, boundPod('p', { terminationGracePeriodSeconds: 20 }), { keep: 'p' }),
    watch(
      'p',
      `${pods}?watch=1&fieldSelector=spec.nodeName=nowhere&resourceVersion=<p.metadata.resourceVersion>`,
    ),
    ask(`DELETE ${pods}/p`),
    ask(`DELETE ${pods}/p`, { what: 'again' }),
    ask(`DELETE ${pods}/p?gracePeriodSeconds=30`),
    ask(`DELETE ${pods}/p?gracePeriodSeconds=10`),
    ask(`DELETE ${pods}/p?gracePeriodSeconds=0`),
    hear('p', 4, { what: 'a pod terminates step by step' }),
    create(pods, boundPod('q', {}, { finalizers: ['example.org/x'] }), { keep: 'q' }),
    ask(`DELETE ${pods}/q?gracePeriodSeconds=0`),
    ask(`DELETE ${pods}/q?gracePeriodSeconds=0`, { what: 'again' }),
    patch('merge', `${pods}/q`, { metadata: { finalizers: [] } }),
    hear('p', 3, { what: 'a pod with a finalizer' }),
    create(pods, boundPod('r'), { keep: 'r' }),
    create(pods, boundPod('later'), { keep: 'later' }),
    ask(`DELETE ${pods}/r?gracePeriodSeconds=-1`),
    patch('strategic', `${pods}/later/status`, { status: { phase: 'Failed' } }),
    ask(`DELETE ${pods}/later`, { what: 'a finished pod is deleted immediately' }),
    hear('p', 6),
  ];
}

function ends(): readonly Step[] {
  return [
    watch(
      'short',
      `${maps}?watch=1&${ours}&timeoutSeconds=3&allowWatchBookmarks=true&resourceVersion=<c.metadata.resourceVersion>`,
    ),
    hear('short', 'to-the-end', { what: 'a bookmark before the end' }),
    watch('of-one', `${maps}/a?watch=1`),
    watch('table', `${maps}?watch=1&fieldSelector=metadata.name=c&resourceVersion=0`, {
      accept: 'application/json;as=Table;v=v1;g=meta.k8s.io',
    }),
    patch('merge', `${maps}/c`, { data: { rows: 'two' } }),
    hear('table', 2, { what: 'tables, only the first with columns' }),
    watch('partial', `${maps}?watch=1&fieldSelector=metadata.name=c&resourceVersion=0`, {
      accept: 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io',
    }),
    hear('partial', 1),
  ];
}

export const watches = chapter('watches', [
  ...fromTheStart(),
  ...initialEvents(),
  ...selecting(),
  ...deleting(),
  ...ends(),
]);
