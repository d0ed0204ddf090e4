import { realCluster } from './suites/place.ts';
import { verbsOfKubectl } from './suites/verbs.ts';

verbsOfKubectl(realCluster);
