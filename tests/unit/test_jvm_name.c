/* Names of methods that compilers of Scala, Clojure and Kotlin made. */
#include <string.h>

#include "include/internal/base.h"
#include "launcher/profile/jvm_name.h"
#include "tests/unit/tap.h"

static const struct {
	const char *file, *name, *want;
} names[] = {
	/* Java has none to decode. */
	{"com/acme/Main.java", "com.acme.Main.lambda$main$0", "com.acme.Main.lambda$main$0"},
	{"com/acme/Main.java", "com.acme.Main$Inner.$plus", "com.acme.Main$Inner.$plus"},
	{"", "core$map.invoke", "core$map.invoke"},
	/* Clojure: seen in Debian's 1.11. */
	{"clojure/core.clj", "clojure.core$map.invoke", "clojure.core/map"},
	{"clojure/core.clj", "clojure.core$map$fn__5935.invoke", "clojure.core/map/fn"},
	{"clojure/core.clj", "clojure.core$require.doInvoke", "clojure.core/require"},
	{"my_app/w.clj", "my_app.core_lib$fib_QMARK_.invokeStatic", "my-app.core-lib/fib?"},
	{"my_app/w.clj", "my_app.core_lib$slow_sum_BANG_.invokePrim", "my-app.core-lib/slow-sum!"},
	{"my_app/w.clj", "my_app.core_lib$eval222.invoke", "my-app.core-lib/eval"},
	{"my_app/w.clj", "my_app.core_lib$__GT_x.invoke", "my-app.core-lib/->x"},
	{"my_app/w.clj", "my_app.core_lib$eval12$__GT_x__227.invoke", "my-app.core-lib/eval/->x"},
	{"clojure/core.cljc", "clojure.core.protocols$fn__8178$G__8173__8191.invoke", "clojure.core.protocols/fn/G"},
	{"clojure/core.clj", "clojure.core.server$loading__6789__auto____8961.invoke", "clojure.core.server/loading"},
	{"my_app/w.clj", "my_app.core_lib.Sq.area_BANG_", "my_app.core_lib.Sq.area!"},
	{"my_app/w.clj", "my_app.core_lib$go$reify__7.run_it", "my-app.core-lib/go/reify.run-it"},
	{"clojure/core.clj", "clojure.core__init.load", "clojure.core__init.load"},
	/* Scala: seen in Debian's 2.11; the last ones are of 2.12. */
	{"S.scala", "Main$.main", "Main.main"},
	{"S.scala", "Main.main", "Main.main"},
	{"S.scala", "Main$.inner$1", "Main.inner"},
	{"S.scala", "Main$Point.$plus", "Main.Point.+"},
	{"S.scala", "Main$Point.is$u0020ok$qmark", "Main.Point.is ok?"},
	{"S.scala", "Main$Point.$colon$colon", "Main.Point.::"},
	{"S.scala", "Main$Work$class.spin", "Main.Work.spin"},
	{"S.scala", "Main$.table$lzycompute", "Main.table"},
	{"R.scala", "scala.runtime.RichInt$.to$extension0", "scala.runtime.RichInt.to"},
	{"S.scala", "Main$equals.run", "Main.equals.run"},
	{"scala/T.scala", "scala.collection.TraversableLike$$anonfun$map$1.apply",
	 "scala.collection.TraversableLike.map.(anonymous)"},
	{"S.scala", "Main$$anonfun$main$1$$anonfun$apply$2.apply", "Main.main.(anonymous).(anonymous)"},
	{"S.scala", "Main$$anonfun$main$1.apply$mcVI$sp", "Main.main.(anonymous)"},
	{"S.scala", "Main$$anonfun$apply$mcVI$sp$1.apply", "Main.(anonymous)"},
	{"S.scala", "Main$$anonfun$1.apply", "Main.(anonymous)"},
	{"S.scala", "Main$$anonfun$$plus$plus$1.apply", "Main.++.(anonymous)"},
	{"S.scala", "Main$$anon$1.run", "Main.(anonymous).run"},
	{"S.scala", "scala.collection.immutable.$colon$colon.<init>", "scala.collection.immutable.::.<init>"},
	{"S.scala", "scala.collection.mutable.ListBuffer.$plus$plus$eq", "scala.collection.mutable.ListBuffer.++="},
	{"S.scala", "Main.com$acme$Main$$hidden", "Main.hidden"},
	{"S.scala", "Main.$init$", "Main.$init$"},
	{"S.scala", "Main.copy$default$1", "Main.copy$default$1"},
	{"S.scala", "Main$.$anonfun$main$1", "Main.main.(anonymous)"},
	{"S.scala", "Main$.$anonfun$main$1$adapted", "Main.main.(anonymous)"},
	/* Kotlin: by its documents. */
	{"com/acme/Main.kt", "com.acme.MainKt.main", "com.acme.main"},
	{"com/acme/main.kt", "com.acme.MainKt.main", "com.acme.main"},
	{"com/acme/Main.kt", "com.acme.OtherKt.main", "com.acme.OtherKt.main"},
	{"Main.kt", "MainKt.main", "main"},
	{"Main.kt", "MainKt$main$1.invoke", "main.(anonymous)"},
	{"Main.kt", "MainKt$main$1$2.invokeSuspend", "main.(anonymous).(anonymous)"},
	{"Main.kt", "MainKt.main$lambda$0", "main.(anonymous)"},
	{"Main.kt", "MainKt.main$lambda-0", "main.(anonymous)"},
	{"Main.kt", "Box$Companion.of", "Box.of"},
	{"Main.kt", "Box.put$default", "Box.put"},
	{"Main.kt", "Box.access$put", "Box.put"},
	{"Main.kt", "Box.put-impl", "Box.put"},
	{"Main.kt", "Box.put-WZ4Q5Ns", "Box.put"},
	/* Kotlin: seen in Debian's kotlinc 1.3, but for the last four. */
	{"kotlin/LazyJVM.kt", "kotlin.LazyKt__LazyJVMKt.lazy", "kotlin.lazy"},
	{"kotlin/_ArraysJvm.kt", "kotlin.collections.ArraysKt___ArraysJvmKt.asList", "kotlin.collections.asList"},
	{"kotlin/MutableCollections.kt",
	 "kotlin.CollectionsKt__MutableCollectionsKt.filterInPlace$CollectionsKt__MutableCollectionsKt",
	 "kotlin.filterInPlace"},
	{"KClassImpl.kt", "KClassImpl.access$getClassId$p", "KClassImpl.getClassId"},
	{"KClassImpl.kt", "KClassImpl.getMemberScope$kotlin_reflect_api", "KClassImpl.getMemberScope"},
	{"D.kt", "D.readClassData$descriptors_jvm", "D.readClassData"},
	{"D.kt", "D$compute$$inlined$let$lambda$1.invoke", "D.compute.(anonymous)"},
	{"D.kt", "D$compute$$inlined$let$lambda$1.<init>", "D.compute.(anonymous).<init>"},
	{"Main.kt", "MainKt$main$$inlined$sortedBy$1.compare", "main.(anonymous).compare"},
	{"Main.kt", "Walks$DefaultImpls.walk", "Walks.walk"},
	{"Main.kt", "MainKt.access$getHome$cp", "getHome"},
	{"Main.kt", "MainKt.main$local", "main$local"},
	{"Main.kt", "Box.put$app_main$default", "Box.put"},
	{"Main.kt", "Box.put$app_main$lambda$1", "Box.put.(anonymous)"},
	/* Of any origin. */
	{"M.kt", "$inlined$.a_", "inlined.a_"},
	{"M.kt", "a$$inlined$.$_", "a.$_"},
	{"M.kt", "a$$inlined$b.access$$p", "a.$p"},
	{"S.scala", "$.", "$."},
	{"S.scala", "a.$", "a.$"},
	{"S.scala", "$$anonfun.$anonfun$", "(anonymous).(anonymous)"},
	{"S.scala", "$.$u00zz", "$u00zz"},
	{"w.clj", "$.invoke", "/"},
	{".kt", "aKt.b", "aKt.b"},
};

int main(void)
{
	char out[128], long_name[300];

	for (size_t i = 0; i < CSINK_ARRAY_SIZE(names); i++)
		is_str(csink_jvm_name(names[i].name, names[i].file, out, sizeof(out)), names[i].want, names[i].name);
	memset(long_name, 'a', sizeof(long_name) - 1);
	memcpy(long_name + 10, "$.", 2);
	long_name[sizeof(long_name) - 1] = 0;
	ok(csink_jvm_name(long_name, "S.scala", out, sizeof(out)) == long_name,
	   "a name that does not fit stays as it is");
	return done();
}
