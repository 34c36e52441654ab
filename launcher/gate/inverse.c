/*
 * Figures of which more is better. Their reciprocals are judged, so that less of them is a regression, with the same
 * threshold and among the same questions; what is shown is turned back. Pure arithmetic.
 */
#include <math.h>

#include "launcher/gate/judge_impl.h"

static double turned(double value)
{
	return 1 / value;
}

bool csink_judge_invert(struct judge *judge)
{
	bool positive = true;

	EACH_RUN(judge, side, i)
	{
		positive &= judge->values[side][i] > 0;
		judge->values[side][i] = turned(judge->values[side][i]);
	}
	return positive;
}

void csink_judge_turn_back(struct csink_gate_row *row)
{
	struct csink_interval was = row->interval;
	double p = row->p_greater;

	row->ratio = turned(row->ratio);
	row->interval = (struct csink_interval){turned(was.high), turned(was.low)};
	/* By the first term of its series: forecasts are approximate. */
	row->error /= row->middle * row->middle;
	row->middle = turned(row->middle);
	row->p_greater = row->p_less;
	row->p_less = p;
	row->is_turned = true;
}
