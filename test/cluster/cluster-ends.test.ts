import { endsOfPods } from './suites/ends.ts';
import { realCluster } from './suites/place.ts';

endsOfPods(realCluster);
