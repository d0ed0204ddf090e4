import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { aPod } from '../../../test/fakes/pods.ts';
import { annotations, type Pod, podUid } from '../../pods/index.ts';
import type { Shortage } from './fit.ts';
import { chooseVictims, mayPreempt } from './preemption.ts';

type Amounts = Readonly<Record<string, string>>;

function aged(name: string, requests: Amounts, limits: Amounts = {}, priority?: number): Pod {
  return aPod({
    metadata: { name, uid: podUid(name) },
    spec: { containers: [{ name: 'main', resources: { requests, limits } }], priority },
  });
}

const burstable = (name: string, cpu: string, memory = '1Mi') => aged(name, { cpu, memory });
const guaranteed = (name: string, cpu: string, memory = '1Mi') =>
  aged(name, { cpu, memory }, { cpu, memory });
const bestEffort = (name: string) => aged(name, {});
const critical = aged('critical', {}, {}, 2_000_000_000);

function short(resource: string, amount: bigint): Shortage {
  return { kind: 'shortage', resource, requested: amount, used: 0n, capacity: 0n };
}

function chosen(others: readonly Pod[], ...needs: readonly Shortage[]): string {
  const choice = chooseVictims(critical, others, needs);
  return choice.found ? choice.victims.map(({ metadata }) => metadata.name).join(' ') : choice.lacking;
}

describe('chooseVictims: pods to preempt for a critical pod', () => {
  it('chooses as few victims as possible', () => {
    const rest = [burstable('a', '100m'), burstable('b', '100m'), burstable('c', '200m')];
    assert.equal(chosen(rest, short('cpu', 150n)), 'c');
    assert.equal(chosen(rest, short('cpu', 250n)), 'c a');
    assert.equal(chosen(rest, short('cpu', 400n)), 'c a b');
  });

  it('prefers victims of lower QoS classes, and chooses victims of a higher class only for resources that the lower classes cannot release', () => {
    const rest = [guaranteed('g', '300m'), burstable('b', '300m'), bestEffort('e')];
    assert.equal(chosen(rest, short('cpu', 200n)), 'b');
    assert.equal(chosen(rest, short('cpu', 400n)), 'b g');
    assert.equal(chosen(rest, short('pods', 1n)), 'e');
    assert.equal(chosen(rest, short('pods', 2n)), 'e b');
    assert.equal(chosen(rest, short('cpu', 200n), short('pods', 2n)), 'e b');
  });

  it('of two otherwise equal victims, prefers the one with the smaller requests, by memory and then by CPU', () => {
    const many = [burstable('a', '1', '3Mi'), burstable('b', '2', '2Mi'), burstable('c', '1', '2Mi')];
    assert.equal(chosen(many, short('cpu', 500n)), 'c');
  });

  it('compares victims by the share of each insufficient resource they release, not by the amount', () => {
    const rest = [burstable('cpus', '1', '1Mi'), burstable('bytes', '1m', '64Mi')];
    assert.equal(chosen(rest, short('cpu', 1000n), short('memory', 2n * 1024n * 1024n)), 'cpus bytes');
  });

  it('reports the resources that no candidate can release', () => {
    const rest = [burstable('a', '100m')];
    assert.equal(chosen(rest, short('cpu', 150n), short('memory', 1n)), '[(res: cpu, q: 50), ]');
  });

  it('never preempts a pod of equal priority', () => {
    const same = aged('same', { cpu: '1' }, {}, 2_000_000_000);
    const file = aPod({ metadata: { name: 'file', annotations: { [annotations.source]: 'file' } } });
    assert.equal(chosen([same, file], short('cpu', 1n)), '[(res: cpu, q: 1), ]');
  });
});

describe('mayPreempt: which pods can be preempted', () => {
  const of = (priority: number | undefined) => aged('p', {}, {}, priority);

  it('lets a critical pod preempt non-critical pods, and otherwise compares priorities', () => {
    assert.ok(mayPreempt(critical, of(1_999_999_999)));
    assert.ok(mayPreempt(of(2_000_001_000), critical));
    assert.ok(!mayPreempt(critical, of(2_000_001_000)));
    assert.ok(!mayPreempt(critical, critical));
    assert.ok(mayPreempt(of(5), of(4)));
    assert.ok(!mayPreempt(of(5), of(undefined)));
  });
});
