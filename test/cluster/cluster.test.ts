import { realCluster } from './suites/place.ts';
import { usualPods } from './suites/pods.ts';

usualPods(realCluster);
