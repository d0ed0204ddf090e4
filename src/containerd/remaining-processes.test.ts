import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ProcessInfo } from '../lib/index.ts';
import { isShimOf } from './remaining-processes.ts';

describe('isShimOf', () => {
  const shim = ['/usr/bin/containerd-shim-runc-v2', '-namespace', 'k8s.io', '-id', 'x', '-address'];
  const running = (argv: readonly string[]): ProcessInfo => ({
    pid: 1,
    parent: 1,
    argv,
    startTime: 1,
    bootId: 'boot',
  });

  it('recognizes a shim by its socket argument', () => {
    assert(isShimOf(running([...shim, '/a/containerd.sock']), '/a/containerd.sock'));
    assert(!isShimOf(running([...shim, '/b/containerd.sock']), '/a/containerd.sock'));
    assert(!isShimOf(running(['grep', ...shim.slice(1), '/a/containerd.sock']), '/a/containerd.sock'));
  });
});
